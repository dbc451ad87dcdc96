"""Maximum-margin clustering: recorded optima, bounds and files."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn import metrics
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import ConvergenceWarning

import widemargin
from widemargin import (
    KMeans,
    MaxMarginClustering,
    SemiSupervisedSVC,
    SpectralClustering,
    compare_clusterings,
)


def test_digits_have_the_optimum_of_other_solvers():
    # Clarabel and SCS find 0.0539 for 50 rows of the classes 3 and 8.
    X, y = load_digits(return_X_y=True)
    rows = np.r_[np.where(y == 3)[0][:25], np.where(y == 8)[0][:25]]
    X = X[rows] / 16
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(-1))
    width = 0.6 * np.median(distances[np.triu_indices(50, 1)])
    model = MaxMarginClustering(gamma=1 / width**2, balance=5, tol=1e-8, random_state=0).fit(X)
    assert model.relaxation_ == pytest.approx(0.05392582, rel=1e-6)
    assert model.gap_ <= 1e-8
    assert model.bound_ <= model.relaxation_ <= model.objective_ * (1 + 1e-8)
    assert abs((model.labels_ == 0).sum() - (model.labels_ == 1).sum()) <= 5


def test_files_keep_labels_and_bounds(tmp_path):
    X, _ = make_blobs(30, centers=[[-2, 0], [2, 0]], random_state=1)
    model = MaxMarginClustering(gamma=0.2, random_state=0).fit(X)
    model.save(tmp_path / "clusters.wm")
    again = widemargin.load(tmp_path / "clusters.wm")
    assert isinstance(again, MaxMarginClustering)
    assert (again.labels_ == model.labels_).all()
    assert again.bound_ == model.bound_
    assert (again.predict(X) == model.predict(X)).all()
    assert ((model.decision_function(X) > 0) == (model.predict(X) == 0)).all()


def test_bad_input_is_refused():
    X = np.arange(5.0)[:, None]
    with pytest.raises(ValueError, match="no equal halves"):
        MaxMarginClustering(balance=0).fit(X)
    with pytest.raises(ValueError, match="n_clusters"):
        MaxMarginClustering(1).fit(X)
    with pytest.raises(ValueError, match="no equal 3 parts"):
        MaxMarginClustering(3, balance=0).fit(X)
    with pytest.raises(ValueError, match="tell rows apart"):
        MaxMarginClustering(gamma=1.0).fit(np.ones((4, 1)))


def hard(rows=240):
    return np.random.default_rng(0).normal(size=(rows, 6))


@pytest.mark.parametrize(
    ("clusters", "method"),
    [(2, "relaxation"), (3, "relaxation"), (2, "iterative"), (3, "iterative")],
)
def test_a_callback_ends_the_search_with_labels_and_a_bound(clusters, method):
    seen = []

    def stop(progress):
        seen.append(progress)
        return True

    X = hard()
    model = MaxMarginClustering(clusters, gamma=0.5, method=method, tol=1e-9, callbacks=stop)
    model.fit(X)
    assert model.status_ == "interrupted"
    assert len(seen) >= 1
    assert set(model.labels_) == set(range(clusters))
    assert model.bound_ <= model.objective_
    assert model.predict(X).shape == (240,)


def test_callbacks_see_the_bound_close():
    gaps = []
    X = hard(100)
    model = MaxMarginClustering(
        gamma=0.5, random_state=0, callbacks=lambda progress: gaps.append(progress.violation)
    ).fit(X)
    assert gaps[-1] <= model.tol < gaps[0]
    assert model.status_ == "solved"


def test_a_time_limit_gives_the_best_labels_so_far():
    X = hard(1200)
    model = MaxMarginClustering(gamma=0.5, tol=1e-9, max_time=1.0, method="relaxation")
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X)
    assert model.status_ == "time limit reached"
    assert set(model.labels_) == {0, 1}
    assert 0 < model.bound_ <= model.objective_


def test_an_exception_in_a_callback_is_the_caller_s():
    def fail(progress):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        MaxMarginClustering(gamma=0.5, callbacks=fail).fit(hard())


def test_semi_supervised_callbacks_stop_with_labels():
    X = hard()
    y = np.where(np.arange(240) < 20, X[:, 0] > 0, -1)
    model = SemiSupervisedSVC(callbacks=lambda progress: True).fit(X, y)
    assert model.status_ == "interrupted"
    assert set(model.transduction_) <= {0, 1}


def test_links_shares_and_memberships():
    X, _ = make_blobs([12, 28], centers=[[-1, 0], [1, 0]], random_state=2)
    pairs = {"must_link": [(0, 1), (1, 2)], "cannot_link": np.array([[3, 4]])}
    model = MaxMarginClustering(gamma=0.3, share=0.3, random_state=0, **pairs).fit(X)
    labels = model.labels_
    assert labels[0] == labels[1] == labels[2]
    assert labels[3] != labels[4]
    assert abs(abs((labels == 0).sum() - (labels == 1).sum()) - 16) <= 4
    assert model.memberships_.shape == (40, 2)
    assert model.memberships_.sum(axis=1) == pytest.approx(1)
    assert np.isnan(MaxMarginClustering(method="alternation").fit(X).memberships_).all()
    with pytest.raises(ValueError, match="two clusters can satisfy"):
        MaxMarginClustering(must_link=[(0, 1)], cannot_link=[(1, 0)]).fit(X)
    for bad in ([0, 1], [(0.5, 1)], [(-1, 2)]):
        with pytest.raises(ValueError, match="must_link"):
            MaxMarginClustering(must_link=bad).fit(X)


def test_comparisons_choose_the_number_of_clusters():
    X, y = make_blobs(90, centers=[[-4, 0], [4, 0], [0, 7]], random_state=0)
    tried = [KMeans(k) for k in (3, 4, 5)]
    tried += [MaxMarginClustering(3, gamma=0.05, tol=1e-2), SpectralClustering(3)]
    found = compare_clusterings(X, y, estimators=tried, random_state=0)
    assert len(found) == 5
    assert found.most_stable["sizes"] == [30, 30, 30]
    assert found.machines[0]["with_first"] == 1.0
    assert [found.machines[k]["error"] for k in (0, 3)] == [0.0, 0.0]
    assert found.machines[2]["stability"] < found.machines[0]["stability"]
    assert "KMeans(n_clusters=3)" in repr(found)
    without = compare_clusterings(X, estimators=tried[:1], pairs=0)
    assert without.machines[0]["stability"] is None
    assert without.machines[0]["error"] is None
    assert without.most_stable is None
    with pytest.raises(TypeError, match="that cluster"):
        compare_clusterings(X, estimators=[object()])
    with pytest.raises(ValueError, match="share"):
        compare_clusterings(X, estimators=tried[:1], share=0.0)


def test_agreement_is_that_of_scikit_learn():
    generator = np.random.default_rng(0)
    classes, clusters = generator.integers(0, 4, 200), generator.integers(0, 6, 200)
    found = widemargin.cluster_agreement(classes, clusters)
    assert found["adjusted_rand"] == pytest.approx(metrics.adjusted_rand_score(classes, clusters))
    assert found["v_measure"] == pytest.approx(metrics.v_measure_score(classes, clusters))
    table = metrics.cluster.contingency_matrix(classes, clusters)
    rows, columns = linear_sum_assignment(-table)
    assert found["error"] == pytest.approx(1 - table[rows, columns].sum() / 200)
    assert found["many_to_one_error"] == pytest.approx(1 - table.max(axis=0).sum() / 200)
    with pytest.raises(ValueError, match="each of 3 rows"):
        widemargin.cluster_agreement([0, 1, 1], [0, 1])
