"""The ranking SVM on 1 000 queries of 100 rows with 136 features, one thread.

    python bench/ranking.py

needs the package with an optimised build. Labels 0 to 4 are the fifths of a noisy linear score
within their query, so that about 4 million pairs have different labels. A second sample of 200
queries tests.
"""

from __future__ import annotations

import time

import numpy as np

from widemargin import RankSVM, ranking_quality

FEATURES, ROWS = 136, 100


def sample(rng, weights: np.ndarray, queries: int):
    """Return features, labels and queries."""
    X = rng.standard_normal((queries * ROWS, FEATURES))
    scores = (X @ weights + rng.standard_normal(len(X))).reshape(queries, ROWS)
    y = scores.argsort(axis=1).argsort(axis=1) * 5 // ROWS
    return X, y.ravel().astype(float), np.repeat(np.arange(queries), ROWS)


def main() -> None:
    """Print seconds, gap and quality for both losses and three values of C."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(FEATURES) / FEATURES**0.5
    X, y, qid = sample(rng, weights, 1000)
    T, t, test_qid = sample(rng, weights, 200)
    print("| loss | C | CPU s | relative gap | Newton steps | test: pairs in order | NDCG@10 |")
    print("|" + "---|" * 7)
    for loss in ("squared_hinge", "hinge"):
        for C in (1e-4, 1e-3, 1e-2):
            times = []
            for _ in range(3):
                started = time.process_time()
                model = RankSVM(C=C, loss=loss, n_jobs=1).fit(X, y, qid=qid)
                times.append(time.process_time() - started)
            gap = model.dual_gap_ / max(model.objective_ + model.dual_gap_, 1e-300)
            found = ranking_quality(t, model.predict(T), test_qid)
            print(
                f"| {loss} | {C:g} | {np.median(times):.2f} | {gap:.1e} | {model.n_iter_} "
                f"| {found['pair_accuracy']:.4f} | {found['ndcg_at_10']:.4f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
