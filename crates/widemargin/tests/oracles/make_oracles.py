"""Records optima of LIBSVM for the integration tests: writes libsvm_optima.json beside itself.

Run in the environment of bench/setup.sh: `bench/.venv/bin/python make_oracles.py`. Every
configuration is solved by libsvm-official at tolerance 1e-10, refined to f64 precision (bench/polish.py)
and certified: the recorded `violation` and `gap` prove how close to optimal the record is. Data
come from the repository's `data/`; rows are thinned by `stride`, then every feature is mapped to
[-1, 1] over the thinned rows as -1 + 2 (v - min) / (max - min), a constant one to 0.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
sys.path[:0] = [str(ROOT / "bench"), str(HERE)]

from machines import Machine, parts, train_libsvm  # noqa: E402
from models import Kernel  # noqa: E402
from polish import polish  # noqa: E402
from shipped import load  # noqa: E402

TOLERANCE = 1e-10


def kernels(features: int):
    """A kernel of each kind at a width that suits rows in [-1, 1]."""
    g = round(1.0 / features, 6)
    return {
        "linear": Kernel("linear", 1.0),
        "polynomial": Kernel("polynomial", g, 1.0, 3),
        "rbf": Kernel("rbf", g),
        "sigmoid": Kernel("sigmoid", round(g / 4, 6), -0.5),
    }


def classification(name, stride, weights):
    yield from (
        (name, stride, machine)
        for kind in ("linear", "polynomial", "rbf", "sigmoid")
        for machine in (
            lambda k, kind=kind: Machine("c_svc", k[kind], c=1.0),
            lambda k, kind=kind: Machine("nu_svc", k[kind], nu=0.23),
        )
    )
    yield name, stride, lambda k: Machine("c_svc", k["rbf"], c=100.0)
    yield name, stride, lambda k: Machine("c_svc", k["rbf"], c=2.0, weights=weights)
    yield name, stride, lambda k: Machine("c_svc", k["linear"], c=0.5, weights=weights)


def regression(name, stride, epsilon):
    for kind in ("linear", "polynomial", "rbf", "sigmoid"):
        yield name, stride, lambda k, kind=kind: Machine(
            "epsilon_svr", k[kind], c=10.0, epsilon=epsilon)
        yield name, stride, lambda k, kind=kind: Machine("nu_svr", k[kind], c=10.0, nu=0.4)


def one_class(name, stride):
    for kind in ("polynomial", "rbf"):
        for nu in (0.1, 0.5):
            yield name, stride, lambda k, kind=kind, nu=nu: Machine("one_class", k[kind], nu=nu)


def configurations():
    """(file in data/, stride, machine given the kernels); weights are by class in sorted order."""
    yield from classification("iris.csv", 1, {0: 3.0, 2: 0.5})
    yield from classification("wine.csv", 1, {0: 0.5, 1: 4.0})
    yield from classification("wdbc.csv", 2, {0: 5.0})
    yield from classification("sonar.csv", 1, {0: 2.0, 1: 0.25})
    yield from classification("digits.libsvm.xz", 6, {3: 2.0, 8: 0.1})
    yield from regression("diabetes.csv", 1, 5.0)
    for name, stride in (("iris.csv", 1), ("wdbc.csv", 2), ("sonar.csv", 1), ("diabetes.csv", 2)):
        yield from one_class(name, stride)


def count_range(machine, part, k):
    """How many support vectors an exact solver may report: strictly needed, and at most allowed."""
    size = np.abs(part.coefficients)
    upper = part.upper if machine.svm_type != "nu_svc" else np.full(
        len(size), size.sum() / (machine.nu * len(size)))
    values = k @ part.coefficients - part.rho
    match machine.svm_type:
        case "c_svc" | "nu_svc":
            touching = part.target * values <= 1 + 1e-4
        case "one_class":
            touching = values <= 1e-4
        case _:
            residual = np.abs(part.target - values)
            tube = machine.epsilon
            if machine.svm_type == "nu_svr":
                free = (size > 1e-6 * upper) & (size < upper * (1 - 1e-6))
                tube = float(np.median(residual[free])) if free.any() else 0.0
            touching = residual >= tube - 1e-4 * max(1.0, tube)
    return size > 1e-5 * upper, touching | (size > 0)


def sorted_parts(machine, model, support, y):
    """The sub-problems with pairs of classes in sorted order; the sign of a swapped pair turns."""
    found = parts(machine, model, support, y)
    if not model.labels:
        return found
    count, pairs = len(model.labels), {}
    order = [(i, j) for i in range(count) for j in range(i + 1, count)]
    for (i, j), part in zip(order, found):
        first, second = model.labels[i], model.labels[j]
        if first > second:
            part = replace(part, target=-part.target, coefficients=-part.coefficients,
                           rho=-part.rho)
        pairs[min(first, second), max(first, second)] = part
    return [pairs[key] for key in sorted(pairs)]


def record(name, stride, machine, x, y, names):
    matrix = machine.kernel.block(x, x)
    model, support = train_libsvm(machine, x, y, TOLERANCE)
    rows = len(y)
    needed, allowed = np.zeros(rows, bool), np.zeros(rows, bool)
    subs, probes = [], np.unique(np.linspace(0, rows - 1, 6).astype(int))
    for raw in sorted_parts(machine, model, support, y):
        k = matrix[np.ix_(raw.rows, raw.rows)]
        part = polish(machine, raw, k)
        certificate = part.certificate(machine, k)
        low, high = count_range(machine, part, k)
        needed[part.rows[low]] = True
        allowed[part.rows[high]] = True
        values = matrix[np.ix_(probes, part.rows)] @ part.coefficients - part.rho
        subs.append({
            "objective": part.objective(machine, k),
            "rho": part.rho,
            "rho_unique": part.offset_is_unique(machine),
            "violation": certificate.violation,
            "gap": certificate.relative_gap,
            "values": [float(f"{v:.10g}") for v in values],
        })
        if machine.svm_type == "nu_svc":
            subs[-1]["r"] = part.undivided(machine)
    kernel = machine.kernel
    entry = {
        "data": name, "stride": stride, "machine": machine.svm_type,
        "kernel": kernel.name, "rows": rows, "features": x.shape[1],
        "support_vectors": [int(needed.sum()), int(allowed.sum())],
        "probes": probes.tolist(), "parts": subs,
    }
    if kernel.name != "linear":
        entry["gamma"] = kernel.gamma
    if kernel.name in ("polynomial", "sigmoid"):
        entry["coef0"] = kernel.coef0
    if kernel.name == "polynomial":
        entry["degree"] = kernel.degree
    if machine.svm_type in ("c_svc", "epsilon_svr", "nu_svr"):
        entry["c"] = machine.c
    if machine.svm_type.startswith("nu") or machine.svm_type == "one_class":
        entry["nu"] = machine.nu
    if machine.svm_type == "epsilon_svr":
        entry["epsilon"] = machine.epsilon
    if machine.weights:
        entry["class_weights"] = [[names[label], w] for label, w in machine.weights.items()]
    if kernel.name == "sigmoid":
        # Coefficients sum to zero, so only the doubly centred matrix must be semidefinite.
        centred = matrix - matrix.mean(0) - matrix.mean(1)[:, None] + matrix.mean()
        entry["smallest_centred_eigenvalue"] = float(np.linalg.eigvalsh(centred)[0])
    return entry


def main():
    entries = []
    for name, stride, make in configurations():
        x, given, codes, names = load(ROOT, name, stride)
        machine = make(kernels(x.shape[1]))
        y = given.astype(float) if machine.svm_type.endswith("svr") else codes
        entry = record(name, stride, machine, x, y, names)
        entries.append(entry)
        worst = max(p["violation"] for p in entry["parts"])
        gap = max(abs(p["gap"]) for p in entry["parts"])
        print(f"{name:16} {machine.title():50} sv {entry['support_vectors']} "
              f"violation {worst:.1e} gap {gap:.1e}", flush=True)
    text = json.dumps({"tolerance": TOLERANCE, "source": "libsvm-official 3.37.0",
                       "configurations": entries}, separators=(",", ":"))
    text = text.replace('{"data"', '\n{"data"')
    (HERE / "libsvm_optima.json").write_text(text + "\n")
    print(f"{len(entries)} configurations, {len(text)} bytes")


if __name__ == "__main__":
    main()
