"""Writes relaxations.json: optima of semidefinite relaxations, and of all labels or choices of few rows.

    python crates/widemargin/tests/oracles/relaxations.py

Needs numpy, cvxpy and clarabel; takes some minutes. With G the matrix of signed kernel values, c the costs of the rows
(1 where nothing is said) and M the matrix of products (Xu 2007, theorems 1 and 7; the multipliers scaled by beta)

    minimise   beta (s/2 + sum of nu) + price
    subject to [G o M, a; a', s] positive semidefinite,  a = l + mu - beta nu,  mu, nu >= 0

clustering       l = 1, M positive semidefinite with a diagonal of ones, sum of M <= balance^2
ramp, trimmed    l = eta = diag M, [1 eta'; eta M] positive semidefinite, price n - sum of eta, or sum of eta >= kept
semi-supervised  l = c, M = P X P' with X positive semidefinite, its diagonal ones; the labelled rows are row 0 of X
"""

import itertools
import json
from pathlib import Path

import cvxpy as cp
import numpy as np

TOLERANCES = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


def gaussian(X, gamma):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))


def solve(objective, constraints):
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver=cp.CLARABEL, **TOLERANCES)
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    return float(problem.value)


def inner(G, M, linear, beta):
    """The inner maximum over the box, dualised: a term to minimise and its constraints."""
    n = len(G)
    s, mu, nu = cp.Variable(), cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
    block = cp.Variable((n + 1, n + 1), PSD=True)
    fits = [
        block[:n, :n] == cp.multiply(G, M),
        block[:n, n] == linear + mu - beta * nu,
        block[n, n] == s,
    ]
    return beta * (s / 2 + cp.sum(nu)), fits


def clustering(K, beta, balance):
    n = len(K)
    M = cp.Variable((n, n), PSD=True)
    term, fits = inner(K, M, np.ones(n), beta)
    return solve(term, [*fits, cp.diag(M) == 1, cp.sum(M) <= balance**2])


def robust(G, beta, kept):
    n = len(G)
    Z = cp.Variable((n + 1, n + 1), PSD=True)
    eta, M = Z[1:, 0], Z[1:, 1:]
    term, fits = inner(G, M, eta, beta)
    fits += [Z[0, 0] == 1, cp.diag(M) == eta]
    if kept is None:
        return solve(term + n - cp.sum(eta), fits)
    return solve(term, [*fits, cp.sum(eta) >= kept])


def semi_supervised(K, known, costs):
    unknown = np.flatnonzero(known == 0)
    P = np.zeros((len(K), len(unknown) + 1))
    P[:, 0] = known
    P[unknown, 1 + np.arange(len(unknown))] = 1
    X = cp.Variable((P.shape[1], P.shape[1]), PSD=True)
    term, fits = inner(K * np.outer(costs, costs), P @ X @ P.T, costs, 1.0)
    # The labels of an even number of rows in equal shares sum to 0; integers below 2 of that parity.
    return solve(term, [*fits, cp.diag(X) == 1, cp.sum(X[1:, 1:]) <= 1])


def least_of(G, signs, linear, upper, beta, price):
    """The least of max l'x - x'(G o yy')x / 2 beta over 0 <= x <= upper, plus price, over the rows y of `signs`.

    Coordinate ascent on all rows at once; rows whose value is above what another's gap leaves open are dropped.
    """
    price = np.broadcast_to(price, len(signs))
    lam, image = np.zeros(signs.shape), np.zeros(signs.shape)
    for sweep in range(100_000):
        for i in range(len(G)):
            gradient = linear[i] - signs[:, i] * image[:, i] / beta
            step = np.clip(lam[:, i] + gradient * beta / G[i, i], 0, upper[:, i]) - lam[:, i]
            lam[:, i] += step
            image += np.outer(step * signs[:, i], G[i])
        if sweep % 20 == 0:
            gradients = linear - signs * image / beta
            value = lam @ linear - 0.5 / beta * (lam * signs * image).sum(1) + price
            gap = (np.maximum(gradients, 0) * upper - gradients * lam).sum(1)
            least = (value + gap).min()
            if least - value.min() <= 1e-9 * abs(least):
                return float(least)
            keep = value <= least
            signs, lam, image, upper, price = (a[keep] for a in (signs, lam, image, upper, price))
    raise ValueError("coordinate ascent did not converge")


def all_signs(count):
    return np.array(list(itertools.product((1.0, -1.0), repeat=count)))


def rows_of(rng, n, distance):
    side = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 2))
    X[:, 0] += distance * side
    return np.round(X, 3), side


def problems():
    rng = np.random.default_rng(22)
    sizes = [6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 25, 30, 36, 45, 60]
    for k, n in enumerate(sizes):
        X, _ = rows_of(rng, n, (0.5, 1.5)[k % 2])
        gamma, beta = (0.3, 1.0, 3.0)[k % 3], (0.01, 0.3, 2.0, 8.0)[k % 4]
        balance = float(max(1 + k % 2, n % 2, round(0.1 * n)))
        K = gaussian(X, gamma)
        found = {"kind": "clustering", "rows": X.ravel().tolist(), "gamma": gamma, "beta": beta}
        found |= {"balance": balance, "optimum": clustering(K, beta, balance)}
        if n <= 16:
            signs = all_signs(n)
            signs = signs[(signs[:, 0] > 0) & (np.abs(signs.sum(1)) <= balance)]
            found["least"] = least_of(K, signs, np.ones(n), np.ones(signs.shape), beta, 0.0)
        yield found
    for k, n in enumerate([6, 7, 8, 9, 10, 11, 12, 13, 16, 20, 26, 34, 6, 8, 10, 12, 18, 24]):
        X, side = rows_of(rng, n, 1.0)
        y = np.where(rng.uniform(size=n) < 0.2, -side, side)
        gamma, beta = (0.2, 1.0)[k % 2], (0.5, 2.0, 0.1)[k % 3]
        kept = None if k < 12 else int(np.ceil(0.75 * n))
        G = gaussian(X, gamma) * np.outer(y, y)
        found = {"kind": "ramp" if kept is None else "trimmed", "rows": X.ravel().tolist()}
        found |= {"labels": y.astype(int).tolist(), "gamma": gamma, "beta": beta}
        found["optimum"] = robust(G, beta, kept)
        if n <= 13:
            masks = (all_signs(n) + 1) / 2
            masks = masks[masks.sum(1) == kept] if kept else masks
            price = 0.0 if kept else n - masks.sum(1)
            found["least"] = least_of(G, np.ones(masks.shape), np.ones(n), masks, beta, price)
        yield found
    for k, n in enumerate([8, 10, 12, 14, 24, 36]):
        X, side = rows_of(rng, n, 1.0)
        labelled = 4
        known = np.where(np.arange(n) < labelled, side, 0.0)
        gamma, c = (0.3, 1.0)[k % 2], (1.5, 0.4)[k % 2]
        plain = gaussian(X, gamma)
        # The squared offset is priced as a feature whose value is the rows' deviation from their mean.
        K = plain + np.mean(np.diag(plain)) - plain.mean()
        unknown = n - labelled
        costs = np.where(known != 0, c, c * labelled / unknown)
        found = {"kind": "semi-supervised", "rows": X.ravel().tolist(), "gamma": gamma, "c": c}
        found |= {"labels": known.astype(int).tolist()}
        found["optimum"] = semi_supervised(K, known, costs)
        if n <= 14:
            rest = all_signs(unknown)
            rest = rest[rest.sum(1) == 0]
            signs = np.hstack([np.tile(known[:labelled], (len(rest), 1)), rest])
            upper = np.ones(signs.shape)
            found["least"] = least_of(K * np.outer(costs, costs), signs, costs, upper, 1.0, 0.0)
        yield found


def main():
    """Write the problems and their optima."""
    out = []
    for found in problems():
        out.append(found)
        size = len(found["rows"]) // 2
        print(found["kind"], size, found["optimum"], found.get("least"), flush=True)
    path = Path(__file__).with_suffix(".json")
    path.write_text("[\n" + ",\n".join(json.dumps(found) for found in out) + "\n]\n")


if __name__ == "__main__":
    main()
