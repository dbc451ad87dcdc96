"""Writes signed_weights.json: optima of learnt signed kernel weights by a semidefinite program.

    python crates/widemargin/tests/oracles/signed_weights.py

Needs numpy, scipy and clarabel. For kernels of trace n over all rows (unlabelled ones included, jitter added before)
twice the primal optimum is (Lanckriet et al. 2004; Lu 2005, (2.8) and (3.12))

    minimise   sum of s_l + 2 (u'z_up - l'z_low + b'lambda)
    subject to [K h_l; h_l' s_l] positive semidefinite for every score l,  K = sum of mu_i K_i positive semidefinite,
               h = -p - z_up + z_low - A'lambda,  z >= 0,  sum of mu_i = 1

with p, l, u, A, b of the dual problem: minimise b'Kb/2 + p'b over l <= b <= u, Ab = b.
"""

import json
from pathlib import Path

import clarabel
import numpy as np
import scipy.sparse as sp

KERNELS = {
    "linear": lambda X: X @ X.T,
    "poly(gamma=1, coef0=1, degree=2)": lambda X: (1 + X @ X.T) ** 2,
    "poly(gamma=1, coef0=1, degree=3)": lambda X: (1 + X @ X.T) ** 3,
    "rbf(gamma=0.5)": lambda X: np.exp(-0.5 * distances(X)),
    "rbf(gamma=3)": lambda X: np.exp(-3 * distances(X)),
    "rbf(gamma=0.501)": lambda X: np.exp(-0.501 * distances(X)),
    "rbf(gamma=0.05)": lambda X: np.exp(-0.05 * distances(X)),
}


def distances(X):
    return ((X[:, None] - X[None]) ** 2).sum(-1)


def scaled(names, X, jitter):
    n = len(X)
    tables = []
    for name in names:
        K = KERNELS[name](X)
        K = K + jitter * np.trace(K) / n * np.eye(n)
        tables.append(K * n / np.trace(K))
    return tables


class Dual:
    """Variables (row, score, p, lower, upper) and groups (members, sum)."""

    def __init__(self):
        self.variables, self.sums = [], []

    def binary(self, rows, signs, c, score):
        first = len(self.variables)
        for row, y in zip(rows, signs, strict=True):
            self.variables.append((row, score, -y, min(0, y * c), max(0, y * c)))
        self.sums.append((range(first, len(self.variables)), 0.0))

    def regression(self, targets, c, epsilon):
        for row, y in enumerate(targets):
            self.variables.append((row, 0, epsilon - y, 0.0, c))
            self.variables.append((row, 0, -epsilon - y, -c, 0.0))
        self.sums.append((range(len(self.variables)), 0.0))

    def crammer_singer(self, labels, c):
        classes = max(labels) + 1
        for row, y in enumerate(labels):
            first = len(self.variables)
            for k in range(classes):
                self.variables.append((row, k, -float(k == y), -c, c * (k == y)))
            self.sums.append((range(first, len(self.variables)), 0.0))

    def optimum(self, tables):
        """Return twice the primal optimum."""
        p, n, v = len(tables), len(tables[0]), len(self.variables)
        scores = sorted({score for _, score, *_ in self.variables})
        places = sorted({(score, row) for row, score, *_ in self.variables})
        at_h = {place: p + k for k, place in enumerate(places)}
        at_s = {score: p + len(places) + k for k, score in enumerate(scores)}
        up = p + len(places) + len(scores)
        low, lam = up + v, up + 2 * v
        size = lam + len(self.sums)
        q = np.zeros(size)
        for score in scores:
            q[at_s[score]] = 1
        A, b, cones = [], [], []

        def row(entries, value):
            dense = np.zeros(size)
            for at, factor in entries:
                dense[at] += factor
            A.append(dense)
            b.append(value)

        row([(i, 1.0) for i in range(p)], 1.0)
        for k, (r, score, linear, lower, upper) in enumerate(self.variables):
            own = [(at_h[score, r], 1.0), (up + k, 1.0), (low + k, -1.0)]
            for g, (members, total) in enumerate(self.sums):
                if k in members:
                    own.append((lam + g, 1.0))
                    q[lam + g] = 2 * total
            row(own, -linear)
            q[up + k], q[low + k] = 2 * upper, -2 * lower
        cones.append(clarabel.ZeroConeT(len(b)))
        for k in range(2 * v):
            row([(up + k, -1.0)], 0.0)
        cones.append(clarabel.NonnegativeConeT(2 * v))

        def semidefinite(rows, score):
            order = len(rows) + (score is not None)
            for j in range(order):
                for i in range(j + 1):
                    factor = 1.0 if i == j else np.sqrt(2)
                    if j < len(rows):
                        entries = [(k, -factor * K[rows[i], rows[j]]) for k, K in enumerate(tables)]
                    elif i < len(rows):
                        entries = [(at_h[score, rows[i]], -factor)]
                    else:
                        entries = [(at_s[score], -factor)]
                    row(entries, 0.0)
            cones.append(clarabel.PSDTriangleConeT(order))

        for score in scores:
            semidefinite([r for s, r in places if s == score], score)
        semidefinite(list(range(n)), None)
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-9
        solver = clarabel.DefaultSolver(
            sp.csc_matrix((size, size)), q, sp.csc_matrix(np.array(A)), np.array(b), cones, settings
        )
        found = solver.solve()
        gap = abs(found.obj_val - found.obj_val_dual) / found.obj_val
        print(f"  {found.status} {found.obj_val:.9f} gap {gap:.1e} mu {np.round(found.x[:p], 4)}")
        assert gap < 2e-7, gap
        return 0.5 * (found.obj_val + found.obj_val_dual)


def problem(case, rng):
    machine = ["cs", "ovo", "ovr", "epsilon-svr"][case % 4]
    classes = 2 + case // 4 % 3
    machine = "ovo" if classes == 2 and machine == "ovr" else machine
    n, unlabelled = 12, [0, 4][case // 2 % 2]
    angles = 2.1 * np.arange(classes)
    y = np.arange(n + unlabelled) % classes
    centres = 1.2 * np.column_stack([np.cos(angles), np.sin(angles)])
    X = np.round(centres[y] + 2.4 * (rng.random((len(y), 2)) - 0.5), 6)
    labels, c = y[:n].tolist(), [0.2, 1.5, 20.0][case % 3]
    names = list(KERNELS)[:3] if case % 3 else list(KERNELS)[: 4 + case % 2]
    if case % 5 == 4:
        names = names[:2] + ["rbf(gamma=0.5)", "rbf(gamma=3)", "rbf(gamma=0.05)"]
    if case >= 28:
        # Nearly equal kernels: weights far above 1.
        names = ["linear", "rbf(gamma=0.5)", "rbf(gamma=0.501)"]
    dual = Dual()
    if machine == "cs":
        dual.crammer_singer(labels, c)
    elif machine == "epsilon-svr":
        labels = np.round(y[:n] + rng.random(n), 6).tolist()
        dual.regression(labels, c, 0.2)
    elif machine == "ovr":
        for k in range(classes):
            dual.binary(range(n), [1.0 if l == k else -1.0 for l in labels], c, k)
    else:
        score = 0
        for i in range(classes):
            for j in range(i + 1, classes):
                rows = [r for r in range(n) if labels[r] in (i, j)]
                dual.binary(rows, [1.0 if labels[r] == i else -1.0 for r in rows], c, score)
                score += 1
    jitter = 1e-3 if case % 2 else 1e-2
    print(case, machine, classes, names)
    return {
        "machine": machine,
        "rows": X.ravel().tolist(),
        "labels": labels,
        "c": c,
        "kernels": names,
        "jitter": jitter,
        "optimum": dual.optimum(scaled(names, X, jitter)),
    }


if __name__ == "__main__":
    rng = np.random.default_rng(7)
    problems = [problem(case, rng) for case in range(32)]
    text = ",\n".join(json.dumps(one) for one in problems)
    Path(__file__).with_name("signed_weights.json").write_text(f"[\n{text}\n]\n")
