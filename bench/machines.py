"""A machine's parameters, its LIBSVM options, and its sub-problems as coefficients over all rows.

A `Solution` holds for every binary (or regression, or one-class) sub-problem the rows that belong
to it and one coefficient per row, which is what `kkt.py` certifies; it can be made from LIBSVM's
Python model or from any LIBSVM model file whose rows are distinct.
"""

from dataclasses import dataclass, field

import numpy as np

import kkt
from models import Kernel, Model

TYPES = {"c_svc": 0, "nu_svc": 1, "one_class": 2, "epsilon_svr": 3, "nu_svr": 4}
KERNELS = {"linear": 0, "polynomial": 1, "rbf": 2, "sigmoid": 3, "precomputed": 4}


@dataclass
class Machine:
    """One configuration: machine, kernel and parameters, with LIBSVM's meaning of each."""

    svm_type: str
    kernel: Kernel
    c: float = 1.0
    nu: float = 0.5
    epsilon: float = 0.1
    weights: dict = field(default_factory=dict)

    def options(self, tolerance: float, cache_mb: int = 1000) -> list[str]:
        """The options of `svm-train`."""
        k = self.kernel
        words = [
            "-q",
            "-s",
            TYPES[self.svm_type],
            "-t",
            KERNELS[k.name],
            "-g",
            repr(k.gamma),
            "-r",
            repr(k.coef0),
            "-d",
            k.degree,
            "-c",
            repr(self.c),
            "-n",
            repr(self.nu),
            "-p",
            repr(self.epsilon),
            "-e",
            repr(tolerance),
            "-m",
            cache_mb,
        ]
        for label, weight in self.weights.items():
            words += [f"-w{label:g}", repr(weight)]
        return [str(word) for word in words]

    def title(self) -> str:
        k = self.kernel
        shape = {
            "linear": "",
            "precomputed": "",
            "rbf": f" γ={k.gamma:g}",
            "sigmoid": f" γ={k.gamma:g} c₀={k.coef0:g}",
            "polynomial": f" γ={k.gamma:g} c₀={k.coef0:g} d={k.degree}",
        }[k.name]
        size = {
            "c_svc": f"C={self.c:g}",
            "nu_svc": f"ν={self.nu:g}",
            "one_class": f"ν={self.nu:g}",
            "epsilon_svr": f"C={self.c:g} ε={self.epsilon:g}",
            "nu_svr": f"C={self.c:g} ν={self.nu:g}",
        }[self.svm_type]
        weights = "".join(f" w{label:g}={weight:g}" for label, weight in self.weights.items())
        return f"{self.svm_type} {k.name}{shape} {size}{weights}"

    def weight(self, label: float) -> float:
        return self.weights.get(label, 1.0)


@dataclass
class Part:
    """One sub-problem: which rows, their signs or targets, their coefficients, the offset."""

    rows: np.ndarray
    target: np.ndarray
    coefficients: np.ndarray
    rho: float
    upper: np.ndarray

    def certificate(self, machine: Machine, k: np.ndarray) -> kkt.Certificate:
        c, rho, y = self.coefficients, self.rho, self.target
        match machine.svm_type:
            case "c_svc":
                return kkt.c_svc(k, c, rho, y, self.upper)
            case "nu_svc":
                return kkt.nu_svc(k, c, rho, y, machine.nu)
            case "epsilon_svr":
                return kkt.epsilon_svr(k, c, rho, y, machine.c, machine.epsilon)
            case "nu_svr":
                return kkt.nu_svr(k, c, rho, y, machine.c, machine.nu)
            case _:
                return kkt.one_class(k, c, rho, machine.nu)

    def undivided(self, machine: Machine) -> float:
        """r, by which LIBSVM divides a ν-SVC after solving it (the tolerance holds before); or 1."""
        if machine.svm_type != "nu_svc":
            return 1.0
        return machine.nu * len(self.rows) / float(np.abs(self.coefficients).sum())

    def offset_is_unique(self, machine: Machine) -> bool:
        """Whether free coefficients fix ρ; a ν-machine needs one on either side."""
        size = np.abs(self.coefficients) * self.undivided(machine)
        upper = np.ones(len(size)) if machine.svm_type == "nu_svc" else self.upper
        free = (size > 1e-7 * upper) & (size < upper * (1 - 1e-7))
        if machine.svm_type in ("nu_svc", "nu_svr"):
            return bool(
                (free & (self.coefficients > 0)).any() and (free & (self.coefficients < 0)).any()
            )
        return bool(free.any())

    def objective(self, machine: Machine, k: np.ndarray) -> float:
        """What LIBSVM prints as `obj`: the value of the minimised dual."""
        c, y = self.coefficients, self.target
        energy = 0.5 * c @ (k @ c)
        match machine.svm_type:
            case "c_svc":
                return float(energy - np.abs(c).sum())
            case "epsilon_svr":
                return float(energy + machine.epsilon * np.abs(c).sum() - y @ c)
            case "nu_svr":
                return float(energy - y @ c)
            case _:
                return float(energy)


def parts(machine: Machine, model: Model, support: np.ndarray, y: np.ndarray) -> list[Part]:
    """The sub-problems of a model whose support vectors are the given training rows."""
    n = len(y)
    if not model.is_classifier():
        c = np.zeros(n)
        c[support] = model.coefficients[0]
        bound = 1.0 if machine.svm_type == "one_class" else machine.c
        return [Part(np.arange(n), y, c, float(model.rho[0]), np.full(n, bound))]
    out = []
    for p, (i, j, ci, cj) in enumerate(model.pairs()):
        dense = np.zeros(n)
        dense[support[model.class_block(i)]] = ci
        dense[support[model.class_block(j)]] = cj
        first, second = model.labels[i], model.labels[j]
        rows = np.flatnonzero((y == first) | (y == second))
        sign = np.where(y[rows] == first, 1.0, -1.0)
        upper = machine.c * np.where(sign > 0, machine.weight(first), machine.weight(second))
        out.append(Part(rows, sign, dense[rows], float(model.rho[p]), upper))
    return out


def match_rows(model: Model, x: np.ndarray) -> np.ndarray:
    """The training row of every support vector; rows must be distinct."""
    if model.kernel.name == "precomputed":
        return model.vectors[:, 0].astype(int)
    place = {row.tobytes(): i for i, row in enumerate(np.ascontiguousarray(x) + 0.0)}
    return np.array([place[row.tobytes()] for row in model.vectors + 0.0], dtype=int)


def train_libsvm(machine: Machine, x: np.ndarray, y: np.ndarray, tolerance: float):
    """LIBSVM's own solution through libsvm-official: the model and its rows."""
    from libsvm import svm, svmutil
    from scipy import sparse

    options = " ".join(machine.options(tolerance))
    if machine.kernel.name == "precomputed":
        numbered = np.column_stack([np.arange(1, len(x) + 1), x])
        places = np.tile(np.arange(numbered.shape[1]), len(x))
        starts = np.arange(0, numbered.size + 1, numbered.shape[1])
        rows = sparse.csr_matrix((numbered.ravel(), places, starts), shape=numbered.shape)
        problem = svm.svm_problem(y, rows, isKernel=True)
    else:
        problem = svm.svm_problem(y, sparse.csr_matrix(x))
    fitted = svmutil.svm_train(problem, options)
    support = np.array(fitted.get_sv_indices()) - 1
    labels = (
        list(map(float, fitted.get_labels())) if machine.svm_type in ("c_svc", "nu_svc") else []
    )
    count = len(labels) * (len(labels) - 1) // 2 or 1
    vectors = support[:, None].astype(float) if machine.kernel.name == "precomputed" else x[support]
    return Model(
        machine.svm_type,
        machine.kernel,
        vectors,
        np.array(fitted.get_sv_coef()).T.reshape(max(len(labels) - 1, 1), -1),
        np.array([fitted.rho[p] for p in range(count)]),
        labels,
        [fitted.nSV[k] for k in range(len(labels))],
    ), support
