"""Figures 6.1 and 6.2 of Lu (2005), EM against a certified optimum, as Markdown on standard output.

The source's parameters are not stated: its two cases are drawn anew, with the ones of our
documentation, and four cases follow in which EM can fail. The source proves its optimum by
generalised Benders decomposition; here it is branch and bound over the means, whose interval is
shown after some numbers of boxes.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from widemargin import CertifiedGaussianMixture

STARTS = 50
BUDGETS = (32, 64, 128, 256, 512, 1024)


def drawn(weights, means, variance, rows, seed):
    """Return rows of a mixture, clipped to [0, 1]."""
    rng = np.random.default_rng(seed)
    component = rng.choice(len(weights), rows, p=weights)
    return np.clip(rng.normal(np.array(means)[component], variance**0.5), 0, 1)


def groups():
    """Return four groups of four rows."""
    return np.concatenate([a + 0.02 * np.arange(4) for a in (0.05, 0.30, 0.60, 0.90)])


def unequal():
    """Return a narrow group beside a wide one."""
    return np.concatenate([np.linspace(0.76, 0.84, 9), np.linspace(0.05, 0.60, 10)])


CASES = {
    "Figure 6.1: 2 components, 25 rows": (drawn((0.4, 0.6), (0.3, 0.7), 0.01, 25, 1), [0.01] * 2),
    "Figure 6.2: 3 components, 20 rows": (
        drawn((0.3, 0.3, 0.4), (0.2, 0.5, 0.8), 0.004, 20, 1),
        [0.004] * 3,
    ),
    "four groups, 3 components, s = 0.002": (groups(), [0.002] * 3),
    "four groups, 3 components, s = 0.01": (groups(), [0.01] * 3),
    "four groups, 2 components, s = 0.004": (groups(), [0.004] * 2),
    "a narrow and a wide group": (unequal(), [0.001, 0.04]),
}


def em(y, variances, means, steps=2000):
    """Return the log-likelihood that EM with known variances ends with."""
    s, w = np.asarray(variances), np.full(len(variances), 1 / len(variances))
    before = -np.inf
    for _ in range(steps):
        joint = np.log(w) - (y[:, None] - means) ** 2 / (2 * s) - np.log(2 * np.pi * s) / 2
        total = np.logaddexp.reduce(joint, axis=1)
        likelihood = total.sum()
        if likelihood - before <= 1e-12 * abs(likelihood):
            break
        share, before = np.exp(joint - total[:, None]), likelihood
        w = np.maximum(share.mean(axis=0), 1e-300)
        means = (share * y[:, None]).sum(axis=0) / np.maximum(share.sum(axis=0), 1e-300)
    return likelihood


def main() -> None:
    """Print a table of optima and one of intervals."""
    print("| case | log-likelihood | bound | boxes | time | EM finds it |")
    print("|--|--|--|--|--|--|")
    intervals = []
    for name, (y, variances) in CASES.items():
        rng = np.random.default_rng(0)
        X, count = y[:, None], len(variances)
        began = time.perf_counter()
        model = CertifiedGaussianMixture(count, variances=variances, random_state=0).fit(X)
        seconds = time.perf_counter() - began
        found = [em(y, variances, rng.choice(y, count)) for _ in range(STARTS)]
        times = sum(value > model.log_likelihood_ - 1e-3 for value in found)
        print(
            f"| {name} | {model.log_likelihood_:.4f} | {model.bound_:.4f} | {model.n_iter_} "
            f"| {1e3 * seconds:.1f} ms | {times} of {STARTS} starts |"
        )
        row = []
        for budget in BUDGETS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.set_params(max_iter=budget).fit(X)
            row.append(f"{model.gap_:.2g}")
        intervals.append(f"| {name} | {' | '.join(row)} |")
    print("\nThe gap after some numbers of boxes:\n")
    print("| case | " + " | ".join(map(str, BUDGETS)) + " |")
    print("|--" * (len(BUDGETS) + 1) + "|")
    print("\n".join(intervals))


if __name__ == "__main__":
    main()
