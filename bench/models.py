"""LIBSVM model files as arrays, and the quantities of a solution computed from them in f64.

Every program's solution passes through the functions here, so that objectives and decision values
are compared by one independent ruler that shares no code with the programs it measures.
"""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

BLOCK = 2048


@dataclass
class Kernel:
    """A kernel of LIBSVM: linear, polynomial, rbf, sigmoid or precomputed."""

    name: str = "rbf"
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3

    def block(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """K(a, b) for dense f64 rows. Precomputed: rows are serial numbers or kernel rows."""
        if self.name == "precomputed":
            return a[:, b[:, 0].astype(np.int64)]
        product = a @ b.T
        if self.name == "linear":
            return product
        if self.name == "rbf":
            product *= -2
            product += np.einsum("ij,ij->i", a, a)[:, None]
            product += np.einsum("ij,ij->i", b, b)[None, :]
            np.maximum(product, 0, out=product)
            product *= -self.gamma
            return np.exp(product, out=product)
        product = self.gamma * product + self.coef0
        return np.tanh(product) if self.name == "sigmoid" else product**self.degree


@dataclass
class Model:
    """A trained machine: support vectors by class, coefficients and offsets as LIBSVM keeps them."""

    svm_type: str
    kernel: Kernel
    vectors: np.ndarray
    coefficients: np.ndarray
    rho: np.ndarray
    labels: list = field(default_factory=list)
    per_class: list = field(default_factory=list)

    @property
    def offsets(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.per_class)]).astype(int)

    def class_block(self, k: int) -> slice:
        return slice(self.offsets[k], self.offsets[k + 1])

    def pairs(self):
        """(i, j, coefficients of class i, of class j) for every pair of classes, LIBSVM's order."""
        for i in range(len(self.per_class)):
            for j in range(i + 1, len(self.per_class)):
                yield (
                    i,
                    j,
                    self.coefficients[j - 1, self.class_block(i)],
                    self.coefficients[i, self.class_block(j)],
                )

    def decision_values(self, rows: np.ndarray) -> np.ndarray:
        """One column per sub-problem: f(x) = Σ coefficient K(sv, x) − ρ."""
        out = np.empty((len(rows), len(self.rho)))
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
            k = self.kernel.block(rows[part], self.vectors)
            if not self.is_classifier():
                out[part] = (k @ self.coefficients[0])[:, None] - self.rho
                continue
            for p, (i, j, ci, cj) in enumerate(self.pairs()):
                out[part, p] = (
                    k[:, self.class_block(i)] @ ci + k[:, self.class_block(j)] @ cj - self.rho[p]
                )
        return out

    def is_classifier(self) -> bool:
        return self.svm_type in ("c_svc", "nu_svc")

    def quadratic(self) -> np.ndarray:
        """cᵀKc of every sub-problem, K among its own support vectors only."""
        if not self.is_classifier():
            return np.array([quadratic_form(self.kernel, self.vectors, self.coefficients[0])])
        classes = len(self.per_class)
        own = np.zeros((classes, classes - 1))
        for k in range(classes):
            rows, c = self.vectors[self.class_block(k)], self.coefficients[:, self.class_block(k)].T
            for start in range(0, len(rows), BLOCK):
                part = slice(start, start + BLOCK)
                own[k] += np.einsum("ij,ij->j", c[part], self.kernel.block(rows[part], rows) @ c)
        values = []
        for i, j, ci, cj in self.pairs():
            cross, left = 0.0, self.vectors[self.class_block(i)]
            right = self.vectors[self.class_block(j)]
            for start in range(0, len(left), BLOCK):
                part = slice(start, start + BLOCK)
                cross += ci[part] @ (self.kernel.block(left[part], right) @ cj)
            values.append(own[i, j - 1] + own[j, i] + 2 * cross)
        return np.array(values)

    def dual(self) -> float:
        """Σα − ½αᵀQα of C-SVC, summed over the pairs of classes."""
        total = sum(np.abs(ci).sum() + np.abs(cj).sum() for _, _, ci, cj in self.pairs())
        return float(total - 0.5 * self.quadratic().sum())


def quadratic_form(kernel: Kernel, rows: np.ndarray, c: np.ndarray) -> float:
    total = 0.0
    for start in range(0, len(rows), BLOCK):
        part = slice(start, start + BLOCK)
        total += c[part] @ (kernel.block(rows[part], rows) @ c)
    return float(total)


_KERNELS = {"linear", "polynomial", "rbf", "sigmoid", "precomputed"}


def read_model(path: Path, features: int) -> Model:
    """Reads a LIBSVM model file."""
    header = {}
    with open(path, encoding="ascii") as handle:
        for line in handle:
            word, *rest = line.split()
            if word == "SV":
                break
            header[word] = rest
        name = header["kernel_type"][0]
        assert name in _KERNELS, f"{path}: kernel {name}"
        kernel = Kernel(
            name,
            float(header.get("gamma", [1])[0]),
            float(header.get("coef0", [0])[0]),
            int(header.get("degree", [3])[0]),
        )
        count, columns = int(header["total_sv"][0]), int(header["nr_class"][0]) - 1
        coefficients = np.zeros((columns, count))
        vectors = np.zeros((count, 1 if name == "precomputed" else features))
        row = -1
        for row, line in enumerate(handle):
            fields = line.split()
            coefficients[:, row] = [float(v) for v in fields[:columns]]
            for item in fields[columns:]:
                index, value = item.split(":")
                if name == "precomputed":
                    vectors[row, 0] = float(value) - 1 if index == "0" else vectors[row, 0]
                else:
                    vectors[row, int(index) - 1] = float(value)
        assert row + 1 == count, f"{path}: {row + 1} support vectors, header says {count}"
    return Model(
        header["svm_type"][0],
        kernel,
        vectors,
        coefficients,
        np.array([float(v) for v in header["rho"]]),
        [float(v) for v in header.get("label", [])],
        [int(v) for v in header.get("nr_sv", [])],
    )
