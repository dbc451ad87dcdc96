"""Training on a Dask cluster: the optimum of one place, also when a worker is lost."""

import os
import pickle
import signal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import scale

import widemargin

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
wd = pytest.importorskip("widemargin.dask")

#: Accurate enough to compare objectives to 1e-6.
EXACT = {"tol": 1e-7, "precision": "double"}


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, dashboard_address=None, memory_limit=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    cluster.scale(3)
    client = distributed.get_client()
    client.wait_for_workers(3, timeout=30)
    return client


def shuffled(load):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return scale(X)[order], y[order]


def same_objective(found, expected):
    assert found.status_ == "solved"
    assert found.report_["ending"] == "verified"
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)


def test_classes_end_where_one_place_does(client):
    X, y = shuffled(load_iris)
    names = np.array(["a", "b", "c"])[y]
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    expected = widemargin.SVC(class_weight="balanced", **EXACT).fit(X, names, weights)
    blocks = [
        da.from_array(values, chunks=(20, *values.shape[1:])) for values in (X, names, weights)
    ]
    found = wd.SVC(client, topology="ring", class_weight="balanced", **EXACT).fit(*blocks)
    same_objective(found, expected)
    assert found.report_["sites"] == 3
    assert found.report_["vectors"] > 0
    assert found.classes_.tolist() == ["a", "b", "c"]
    labels = found.predict(blocks[0])
    assert isinstance(labels, da.Array)
    np.testing.assert_array_equal(labels.compute(), expected.predict(X))
    values = found.decision_function(blocks[0])
    assert values.shape == (150, 3)
    np.testing.assert_allclose(values.compute(), expected.decision_function(X), rtol=0, atol=1e-5)
    np.testing.assert_array_equal(found.predict(X[:5]), expected.predict(X[:5]))


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_linear_machines_share_sums(client, load):
    X, y = shuffled(load)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    parameters = {"class_weight": "balanced", "tol": 1e-9, "C": 0.5}
    expected = widemargin.LinearSVC(dual=False, **parameters).fit(X, y, weights)
    blocks = [da.from_array(values, chunks=(40, *values.shape[1:])) for values in (X, y, weights)]
    found = wd.LinearSVC(client, **parameters).fit(*blocks)
    assert found.report_["ending"] == "verified"
    assert found.report_["vectors"] == 0
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found.predict(blocks[0]).compute(), expected.predict(X))
    with pytest.raises(ValueError, match="squared-hinge or logistic"):
        wd.LinearSVC(client, loss="hinge").fit(*blocks)


def test_frames_have_named_features_and_unknown_lengths(client):
    X, y = shuffled(load_diabetes)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])]).assign(y=y)
    expected = widemargin.SVR(C=10, epsilon=5, **EXACT).fit(frame.drop(columns="y"), y)
    lazy = dd.from_pandas(frame, npartitions=4)
    found = wd.SVR(C=10, epsilon=5, schedule="sequential", sites=2, **EXACT)
    found.fit(lazy.drop(columns="y"), lazy["y"])
    same_objective(found, expected)
    assert found.feature_names_in_.tolist() == list(frame.columns[:-1])
    answers = found.predict(lazy.drop(columns="y")).compute()
    np.testing.assert_allclose(answers, expected.predict(frame.drop(columns="y")), atol=1e-3)


def test_a_killed_worker_changes_nothing(client, monkeypatch):
    X, y = shuffled(load_breast_cancer)
    expected = widemargin.SVC(**EXACT).fit(X, y)
    exchange, pids, calls = wd._Places.exchange, client.run(os.getpid), []

    def killing(places, inboxes):
        calls.append(len(inboxes))
        if len(calls) == 4:
            os.kill(pids[places._owners[1]], signal.SIGKILL)
        return exchange(places, inboxes)

    monkeypatch.setattr(wd._Places, "exchange", killing)
    blocks = da.from_array(X, chunks=(100, 30)), da.from_array(y, chunks=100)
    found = wd.SVC(client, topology="ring", **EXACT).fit(*blocks)
    assert len(calls) > 4
    same_objective(found, expected)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


def test_the_model_is_an_ordinary_one(client, tmp_path):
    X, y = shuffled(load_iris)
    machine = wd.SVC(client, sites=2, C=3).fit(X, y)
    machine.save(tmp_path / "model.wm")
    again = widemargin.load(tmp_path / "model.wm")
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    assert type(machine.local()) is widemargin.SVC
    copy = pickle.loads(pickle.dumps(machine))
    assert copy.client is None
    np.testing.assert_array_equal(copy.predict(X), machine.predict(X))
    assert clone(machine).client is client
    assert not hasattr(clone(machine), "classes_")


def test_what_needs_one_place_is_refused(client):
    X, y = shuffled(load_iris)
    refused = [
        ({"kernel": "precomputed"}, "kernel of features"),
        ({"kernel": np.dot}, "kernel of features"),
        ({"warm_start": True}, "no warm_start"),
        ({"callbacks": [print]}, "no callbacks"),
        ({"topology": "0>1"}, "strongly connected"),
        ({"schedule": "never"}, "parallel, sequential or async"),
    ]
    for parameters, message in refused:
        with pytest.raises(ValueError, match=message):
            wd.SVC(client, sites=2, **parameters).fit(X, y)
    with pytest.raises(ValueError, match="greater than one"):
        wd.SVC(client).fit(X, np.zeros(len(y)))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        wd.SVC(client).fit(X, y)
    with pytest.raises(ValueError, match="partitions"):
        wd.SVC(client).fit(dd.from_pandas(pd.DataFrame(X), npartitions=3), da.from_array(y))


def test_a_search_has_the_scores_of_one_place(client):
    X, y = shuffled(load_iris)
    grid = {"C": [0.1, 1, 10], "gamma": [0.01, 0.1, "scale"]}
    expected = widemargin.SVCSearchCV(widemargin.SVC(), grid).fit(X, y)
    found = wd.SVCSearchCV(widemargin.SVC(), grid, client).fit(X, y)
    assert found.best_params_ == expected.best_params_
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    with pytest.raises(ValueError, match="kernel by name"):
        wd.SVCSearchCV(widemargin.SVC(kernel=np.dot), {"C": [1]}, client).fit(X, y)
