"""The ranking machine against scikit-learn and scipy."""

import pickle

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import average_precision_score, ndcg_score
from sklearn.svm import LinearSVC

import widemargin
from widemargin import RankSVM, ranking_quality


@pytest.fixture
def queries():
    rng = np.random.RandomState(0)
    X = rng.randn(120, 4)
    y = np.clip(np.round(X[:, 0] - X[:, 1] + rng.randn(120)), 0, 3)
    return X, y, rng.permutation(np.repeat(["a", "b", "c"], 40))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_optimum_is_that_of_a_classifier_of_all_differences(queries, loss):
    X, y, qid = queries
    rows = range(len(y))
    differences = [X[i] - X[j] for i in rows for j in rows if qid[i] == qid[j] and y[i] > y[j]]
    signs = np.where(np.arange(len(differences)) % 2 == 0, 1, -1)
    pairs = np.array(differences) * signs[:, None]
    theirs = LinearSVC(loss=loss, C=0.05, fit_intercept=False, tol=1e-9, max_iter=1_000_000)
    theirs.fit(pairs, signs)
    ours = RankSVM(C=0.05, loss=loss, tol=1e-9).fit(X, y, qid=qid)
    np.testing.assert_allclose(ours.coef_, theirs.coef_.ravel(), atol=1e-4)


def test_measures_are_those_of_scikit_learn_and_scipy(queries):
    X, y, qid = queries
    scores = RankSVM(C=0.01).fit(X, y, qid).predict(X)
    found = ranking_quality(y, scores, qid)
    own = [(y[qid == query], scores[qid == query]) for query in "abc"]
    assert found["queries"] == 3
    gains = [ndcg_score([2**truth - 1], [score]) for truth, score in own]
    cut = [ndcg_score([2**truth - 1], [score], k=10) for truth, score in own]
    precision = [average_precision_score(truth > 0, score) for truth, score in own]
    tau = [kendalltau(truth, score).statistic for truth, score in own]
    assert found["ndcg"] == pytest.approx(np.mean(gains), abs=1e-12)
    assert found["ndcg_at_10"] == pytest.approx(np.mean(cut), abs=1e-12)
    assert found["mean_average_precision"] == pytest.approx(np.mean(precision), abs=1e-12)
    assert found["kendall_tau"] == pytest.approx(np.mean(tau), abs=1e-12)


def test_pickles_and_files_give_the_same_scores(queries, tmp_path):
    X, y, qid = queries
    model = RankSVM(C=0.01).fit(X, y, qid)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    model.save(tmp_path / "rank.wm")
    again = widemargin.load(tmp_path / "rank.wm")
    assert isinstance(again, RankSVM)
    assert again.C == 0.01
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_queries_must_be_one_per_row(queries):
    X, y, qid = queries
    with pytest.raises(ValueError, match="expected one per row"):
        RankSVM().fit(X, y, qid[:-1])
    with pytest.raises(ValueError, match="two different labels"):
        RankSVM().fit(X, y, np.arange(120))
