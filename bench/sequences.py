"""Hidden Markov models beside hmmlearn: processor time of an iteration and of Viterbi, one thread.

100 sequences of 200 positions, 10 states; 20 symbols or vectors of 5 features. Both begin with the same
model, so that the log-likelihoods of the iterations can be compared as well.

    python bench/sequences.py

needs the package with an optimised build and hmmlearn.
"""

from __future__ import annotations

import logging
import time

import numpy as np
from hmmlearn import hmm

import widemargin

STATES, LENGTHS, ITERATIONS = 10, [200] * 100, 20


def first(model, letters: dict[str, np.ndarray]):
    """Set the parameters to begin with."""
    for name, value in letters.items():
        setattr(model, name, value)
    return model


def seconds(work) -> float:
    """Return the least processor time of three runs."""
    times = []
    for _ in range(3):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def compare(name: str, make, X: np.ndarray, parts: dict[str, np.ndarray]) -> None:
    """Print milliseconds of an iteration and of Viterbi, and how far the log-likelihoods differ."""
    row, histories = [name], []
    for package in (widemargin, hmm):

        def fit(iterations: int, package=package):
            return first(make(package, iterations), parts).fit(X, LENGTHS)

        iteration = (seconds(lambda: fit(1 + ITERATIONS)) - seconds(lambda: fit(1))) / ITERATIONS
        model = fit(ITERATIONS)
        histories.append(np.array(model.monitor_.history))
        row += [f"{1e3 * iteration:.2f}", f"{1e3 * seconds(lambda: model.predict(X, LENGTHS)):.2f}"]
    far = np.abs(histories[0] - histories[1]).max() / np.abs(histories[0]).max()
    print("| " + " | ".join([*row, f"{far:.0e}"]) + " |")


def main() -> None:
    """Run the three kinds of emissions."""
    logging.disable(logging.CRITICAL)
    rng = np.random.RandomState(0)
    symbols, rows = rng.randint(20, size=(20_000, 1)), rng.randn(20_000, 5)
    chain = {
        "startprob_": rng.dirichlet(np.ones(STATES)),
        "transmat_": rng.dirichlet(np.ones(STATES), STATES),
    }
    means = {"means_": rng.randn(STATES, 5)}
    usual = {"tol": -1e9, "init_params": "", "implementation": "scaling", "n_components": STATES}
    print("| | ours: iteration, ms | Viterbi, ms | hmmlearn: iteration, ms | Viterbi, ms | far |")
    print("|---|---|---|---|---|---|")
    table = {"emissionprob_": rng.dirichlet(np.ones(20), STATES)}
    compare(
        "symbols", lambda p, n: p.CategoricalHMM(n_iter=n, **usual), symbols, {**chain, **table}
    )
    for shape, covars in (("diag", np.ones((STATES, 5))), ("full", np.tile(np.eye(5), (10, 1, 1)))):

        def make(package, iterations, shape=shape):
            given = {"covariance_type": shape, "covars_prior": 0.0, "n_iter": iterations}
            return package.GaussianHMM(**given, **usual)

        compare(shape, make, rows, {**chain, **means, "covars_": covars})


if __name__ == "__main__":
    main()
