"""The conic forms of learnt kernels (Lu 2005; Lanckriet et al., JMLR 5, 2004), solved by Clarabel.

Values are t, twice the primal optimum; rows with labels come first among those of the matrices,
whose traces over all rows are the same. Weights sum to 1.
"""

import functools

import numpy as np
import scipy.sparse as sp


@functools.cache
def places(size):
    """Return the upper triangle of a matrix column by column, and factors that keep lengths."""
    rows, columns = np.triu_indices(size)
    order = np.lexsort((rows, columns))
    rows, columns = rows[order], columns[order]
    return rows, columns, np.where(rows == columns, 1, np.sqrt(2))


def triangle(matrix):
    """Return the upper triangle as Clarabel's cone of matrices reads it."""
    rows, columns, factors = places(len(matrix))
    return matrix[rows, columns] * factors


class Program:
    """minimise ½ xᵀPx + cᵀx under constraints that are added one after another."""

    def __init__(self, variables):
        self.size = variables
        self.linear = np.zeros(variables)
        self.quadratic = sp.csc_matrix((variables, variables))
        self.rows, self.right, self.cones = [], [], []

    def add(self, rows, right, cone):
        """Demand that right - rows x is in the cone."""
        self.rows.append(sp.csc_matrix(rows))
        self.right.append(np.atleast_1d(right))
        self.cones.append((cone, len(self.right[-1])))

    def equal(self, rows, right):
        """Demand rows x = right."""
        self.add(rows, right, "equal")

    def at_most(self, rows, right):
        """Demand rows x <= right."""
        self.add(rows, right, "at most")

    def not_negative(self, at):
        """Demand that variables are not negative."""
        self.at_most(-sp.eye(self.size, format="csr")[at], np.zeros(len(at)))

    def in_ball(self, rows, right):
        """Demand that the first entry of right - rows x is at least the length of the others."""
        self.add(rows, right, "ball")

    def semidefinite(self, constant, parts):
        """Demand that constant + sum x_i parts[i] is positive semidefinite."""
        right = triangle(constant)
        columns = [sp.csc_matrix((len(right), 1))] * self.size
        for variable, matrix in parts.items():
            columns[variable] = sp.csc_matrix(-triangle(matrix)[:, None])
        self.add(sp.hstack(columns), right, "semidefinite")

    def solve(self, tol=1e-10):
        """Return x and the value, the mean of the primal and the dual one."""
        import clarabel

        kinds = {
            "equal": clarabel.ZeroConeT,
            "at most": clarabel.NonnegativeConeT,
            "ball": clarabel.SecondOrderConeT,
            "semidefinite": lambda length: clarabel.PSDTriangleConeT(order(length)),
        }
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
        found = clarabel.DefaultSolver(
            self.quadratic,
            self.linear,
            sp.vstack(self.rows, format="csc"),
            np.concatenate(self.right),
            [kinds[kind](length) for kind, length in self.cones],
            settings,
        ).solve()
        primal, dual = found.obj_val, found.obj_val_dual
        off = abs(primal - dual) / max(abs(primal), 1e-300)
        assert off <= max(4e-7, 10 * tol), (found.status, primal, dual)
        return np.array(found.x), 0.5 * (primal + dual)

    def solve_by_scs(self, tol):
        """Return x and the value by SCS, a first-order method."""
        import scs

        rows, right, sizes = [], [], {}
        for kind, name in [("equal", "z"), ("at most", "l"), ("ball", "q"), ("semidefinite", "s")]:
            for own, value, (cone, length) in zip(self.rows, self.right, self.cones, strict=True):
                if cone != kind:
                    continue
                if kind == "semidefinite":
                    # SCS reads the lower triangle column by column.
                    upper, columns, _ = places(order(length))
                    at = np.lexsort((columns, upper))
                    own, value = own.tocsr()[at], value[at]
                    length = order(length)
                rows.append(own)
                right.append(value)
                if name in "zl":
                    sizes[name] = sizes.get(name, 0) + length
                else:
                    sizes.setdefault(name, []).append(length)
        data = {"A": sp.vstack(rows, format="csc"), "b": np.concatenate(right), "c": self.linear}
        found = scs.SCS(
            data, sizes, eps_abs=tol, eps_rel=tol, verbose=False, max_iters=200000
        ).solve()
        return found["x"], found["info"]["pobj"]


def order(length):
    """Return the order of the matrix whose triangle has a length."""
    return int((np.sqrt(8 * length + 1) - 1) / 2)


def border(size, column, entry):
    """Return a matrix that is zero but for `entry` in the last column, and for its transpose."""
    matrix = np.zeros((size, size))
    matrix[:-1, -1] = matrix[-1, :-1] = column
    matrix[-1, -1] = entry
    return matrix


def corner(K, size):
    """Return K in the upper left of a matrix."""
    matrix = np.zeros((size, size))
    matrix[: len(K), : len(K)] = K
    return matrix


def restrict(program, at, grams, rule):
    """Restrict the weights `at`: signed, nonnegative, or of at most a Euclidean norm."""
    if rule == "signed":
        parts = dict(zip(at, grams, strict=True))
        program.semidefinite(np.zeros_like(grams[0]), parts)
    else:
        program.not_negative(at)
    if isinstance(rule, float):
        rows = np.vstack([np.zeros(program.size), -np.eye(program.size)[at]])
        program.in_ball(rows, np.concatenate([[rule], np.zeros(len(at))]))
    else:
        total = np.zeros(program.size)
        total[at] = 1
        program.equal(total, 1.0)


def joined(grams, y, C, rule):
    """Return weights and value of (2.6): one matrix for all classes together."""
    n, k, p = len(y), y.max() + 1, len(grams)
    d = np.eye(k)[y].ravel()
    size = n * k
    program = Program(1 + size + n + p)
    nu, lam, mu = 1 + np.arange(size), 1 + size + np.arange(n), 1 + size + n + np.arange(p)
    program.linear[0] = 1
    parts = {0: border(size + 1, 0, 1)}
    for i in range(size):
        parts[nu[i]] = border(size + 1, -np.eye(size)[i], -2 * C * d[i])
    for i in range(n):
        parts[lam[i]] = border(size + 1, np.kron(np.eye(n)[i], np.ones(k)), 0)
    for i in range(p):
        parts[mu[i]] = corner(np.kron(grams[i][:n, :n], np.eye(k)), size + 1)
    program.semidefinite(border(size + 1, d, 0), parts)
    program.not_negative(nu)
    restrict(program, mu, grams, rule)
    x, value = program.solve()
    return x[mu], value


def split_program(grams, y, C, rule):
    """Return (2.8), one matrix for every class, and the places of the weights."""
    n, k, p = len(y), y.max() + 1, len(grams)
    program = Program(k + n * k + n + p)
    nu = (k + np.arange(n * k)).reshape(k, n)
    lam, mu = k + n * k + np.arange(n), k + n * k + n + np.arange(p)
    program.linear[:k] = 1
    for c in range(k):
        d = (y == c).astype(float)
        parts = {c: border(n + 1, 0, 1)}
        for i in range(n):
            parts[nu[c, i]] = border(n + 1, -np.eye(n)[i], -2 * C * d[i])
            parts[lam[i]] = border(n + 1, np.eye(n)[i], 0)
        for i in range(p):
            parts[mu[i]] = corner(grams[i][:n, :n], n + 1)
        program.semidefinite(border(n + 1, d, 0), parts)
    program.not_negative(nu.ravel())
    restrict(program, mu, grams, rule)
    return program, mu


def split(grams, y, C, rule):
    """Return weights and value of (2.8)."""
    program, mu = split_program(grams, y, C, rule)
    x, value = program.solve()
    return x[mu], value


def regression(grams, y, C, epsilon, rule):
    """Return weights and value of (3.12), the two sides of the tube apart."""
    n, p = len(y), len(grams)
    program = Program(2 + 4 * n + p)
    nu, v, delta, eta = (2 + np.arange(4 * n)).reshape(4, n)
    mu = 2 + 4 * n + np.arange(p)
    program.linear[0] = 1
    parts = {0: border(n + 1, 0, 1), 1: border(n + 1, np.ones(n), 0)}
    for i in range(n):
        one = np.eye(n)[i]
        parts[nu[i]], parts[v[i]] = border(n + 1, one, 0), border(n + 1, -one, 0)
        parts[delta[i]] = border(n + 1, -one, -4 * C)
        parts[eta[i]] = border(n + 1, one, -4 * C)
    for i in range(p):
        parts[mu[i]] = corner(grams[i][:n, :n], n + 1)
    program.semidefinite(border(n + 1, y, 0), parts)
    balance = np.zeros((n, program.size))
    for at, sign in ((nu, 1), (v, 1), (delta, -1), (eta, -1)):
        balance[np.arange(n), at] = sign
    program.equal(balance, np.full(n, epsilon))
    program.not_negative(np.concatenate([nu, v, delta, eta]))
    restrict(program, mu, grams, rule)
    x, value = program.solve()
    return x[mu], value


def two_classes(grams, signs, C, rule):
    """Return weights and value for machines with an offset, one for every vector of `signs`."""
    problems, n, p = len(signs), len(signs[0]), len(grams)
    own = 2 + 2 * n
    program = Program(problems * own + p)
    mu = problems * own + np.arange(p)
    for c, s in enumerate(signs):
        first = c * own
        program.linear[first] = 1
        parts = {first: border(n + 1, 0, 1), first + 1: border(n + 1, np.ones(n), 0)}
        for i in range(n):
            one = s[i] * np.eye(n)[i]
            parts[first + 2 + i] = border(n + 1, one, 0)
            parts[first + 2 + n + i] = border(n + 1, -one, -2 * C)
        for i in range(p):
            parts[mu[i]] = corner(grams[i][:n, :n], n + 1)
        program.semidefinite(border(n + 1, s, 0), parts)
        program.not_negative(first + 2 + np.arange(2 * n))
    restrict(program, mu, grams, rule)
    x, value = program.solve()
    return x[mu], value


def quadratically_constrained_program(grams, y, C):
    """Return form (B) for Crammer and Singer's machine and weights that are not negative."""
    n, k = len(y), y.max() + 1
    d = np.eye(k)[y].ravel()
    size = n * k
    program = Program(size + 1)
    program.linear[:-1], program.linear[-1] = -2 * d, 1
    sums = sp.kron(sp.eye(n), np.ones(k))
    program.equal(sp.hstack([sums, sp.csr_matrix((n, 1))]), np.zeros(n))
    program.at_most(sp.eye(size + 1, format="csr")[:-1], C * d)
    for gram in grams:
        values, vectors = np.linalg.eigh(gram[:n, :n])
        kept = values > 1e-13 * values[-1]
        root = sp.kron((vectors[:, kept] * np.sqrt(values[kept])).T, sp.eye(k))
        last = np.zeros((2, size + 1))
        last[:, -1] = -1
        root = sp.hstack([-2 * root, sp.csr_matrix((root.shape[0], 1))])
        right = np.concatenate([[1, -1], np.zeros(root.shape[0])])
        program.in_ball(sp.vstack([last, root]), right)
    return program


def quadratically_constrained(grams, y, C):
    """Return the value of form (B)."""
    return -quadratically_constrained_program(grams, y, C).solve()[1]


def scores(K, y, C):
    """Return the scores of all rows of K by Crammer and Singer's machine over the labelled ones."""
    n, k = len(y), y.max() + 1
    d = np.eye(k)[y].ravel()
    program = Program(n * k)
    program.quadratic = sp.triu(sp.csc_matrix(np.kron(K[:n, :n], np.eye(k)))).tocsc()
    program.linear = -d
    program.equal(np.kron(np.eye(n), np.ones(k)), np.zeros(n))
    program.at_most(np.eye(n * k), C * d)
    x, _ = program.solve()
    return K[:, :n] @ x.reshape(n, k)
