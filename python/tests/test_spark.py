"""Training on Spark; runs where pyspark and Java are installed."""

import os
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import widemargin

sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = sql.SparkSession.builder.master("local[3]").config("spark.ui.enabled", "false")
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.mark.parametrize("machine", ["SVC", "LinearSVC"])
def test_a_frame_ends_where_one_place_does(spark, machine):
    from widemargin.spark import fit

    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    frame = pd.DataFrame(X, columns=list("abcd")).assign(species=names)
    exact = {"tol": 1e-7, "precision": "double"} if machine == "SVC" else {"tol": 1e-9}
    estimator = getattr(widemargin, machine)(**exact)
    expected = getattr(widemargin, machine)(**exact).fit(X, names)
    found = fit(estimator, spark.createDataFrame(frame), list("abcd"), "species", sites=3)
    assert type(found) is type(estimator)
    assert found.report_["ending"] == "verified"
    assert found.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-4)
