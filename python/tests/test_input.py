"""Every kind of table: frames, sparse formats, memory layouts, numbers and labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from widemargin import SVC, SVR, OneClassSVM


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def expected(iris):
    return SVC().fit(*iris)


def assert_equal(model, expected, X):
    np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize(
    "change",
    [
        np.asfortranarray,
        lambda X: X[::-1][::-1],
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: X.tolist(),
        lambda X: X.astype(object),
        lambda X: X.astype(">f8"),
        lambda X: np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(np.float64).reshape(X.shape),
        lambda X: memoryview(np.ascontiguousarray(X)),
    ],
    ids=["fortran", "reversed", "strided", "list", "object", "big-endian", "unaligned", "buffer"],
)
def test_layouts(iris, expected, change):
    X, y = iris
    assert_equal(SVC().fit(change(X), y), expected, X)


def test_read_only_and_memory_mapped(iris, expected, tmp_path):
    X, y = iris
    locked = X.copy()
    locked.flags.writeable = False
    assert_equal(SVC().fit(locked, y), expected, locked)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_equal(SVC().fit(mapped, y), expected, mapped)


def test_nothing_of_the_caller_changes(iris):
    X, y = iris
    sparse = sp.csr_matrix(X)
    sparse.indices[:4] = sparse.indices[:4][::-1].copy()
    sparse.data[:4] = sparse.data[:4][::-1].copy()
    sparse.has_sorted_indices = False
    before = sparse.indices.copy()
    model = SVC(kernel="linear").fit(sparse, y)
    np.testing.assert_array_equal(sparse.indices, before)
    np.testing.assert_allclose(model.coef_.toarray(), SVC(kernel="linear").fit(X, y).coef_)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint8, np.int64, bool])
def test_number_formats(dtype):
    rng = np.random.RandomState(0)
    X = (rng.randn(60, 5) > 0).astype(dtype)
    y = rng.randint(0, 2, 60)
    model = SVC(gamma=0.3).fit(X, y)
    reference = SVC(gamma=0.3).fit(X.astype(np.float64), y)
    np.testing.assert_allclose(
        model.decision_function(X), reference.decision_function(X), atol=1e-3
    )


def test_precision_follows_the_data(iris):
    X, y = iris
    assert SVC().fit(X, y)._model.precision == "double"
    assert SVC().fit(X.astype(np.float32), y)._model.precision == "single"
    assert SVC().fit(np.rint(X), y)._model.precision == "single"
    assert SVC(tol=1e-6).fit(np.rint(X), y)._model.precision == "double"
    assert SVC(precision="single").fit(X, y)._model.precision == "single"
    assert SVC(precision="double").fit(X.astype(np.float32), y)._model.precision == "double"


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(iris, expected, library):
    frames = pytest.importorskip(library)
    X, y = iris
    columns = {name: X[:, i] for i, name in enumerate("abcd")}
    build = frames.table if library == "pyarrow" else frames.DataFrame
    frame = build(columns)
    model = SVC().fit(frame, y)
    assert_equal(model, expected, frame)
    if library != "pyarrow":
        np.testing.assert_array_equal(model.feature_names_in_, list("abcd"))


@pytest.mark.parametrize(
    "container",
    [
        sp.csr_matrix,
        sp.csr_array,
        sp.csc_matrix,
        sp.csc_array,
        sp.coo_matrix,
        sp.coo_array,
        sp.lil_matrix,
        sp.dok_matrix,
        sp.bsr_matrix,
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_formats(container, dtype):
    rng = np.random.RandomState(0)
    X = (rng.rand(80, 30) * (rng.rand(80, 30) < 0.1)).astype(dtype)
    y = rng.randint(0, 3, 80)
    sparse = SVC(gamma=0.7).fit(container(X), y)
    dense = SVC(gamma=0.7).fit(X, y)
    assert sp.issparse(sparse.support_vectors_)
    assert sparse.support_vectors_.dtype == dtype
    np.testing.assert_allclose(
        sparse.decision_function(container(X)), dense.decision_function(X), atol=2e-3
    )


def test_duplicate_entries_of_sparse_tables_add_up(iris):
    X, y = iris
    rows, columns = np.nonzero(X)
    halves = sp.coo_matrix(
        (np.tile(X[rows, columns] / 2, 2), (np.tile(rows, 2), np.tile(columns, 2))), shape=X.shape
    )
    model = SVC().fit(halves, y)
    np.testing.assert_array_equal(model.predict(sp.csr_matrix(X)), SVC().fit(X, y).predict(X))


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "c"],
        [10, -3, 7],
        [0.5, 1.5, 2.5],
        [True, False, True],
        ["10", "9", "8"],
        ["ä", "z", "o"],
        [2**62, -(2**62), 0],
    ],
    ids=str,
)
def test_labels_come_back_as_given(iris, labels):
    X, y = iris
    given = np.array(labels)[y]
    if np.asarray(labels).dtype.kind == "f":
        given = np.array(labels, dtype=object)[y].astype(str)
    model = SVC().fit(X, given)
    np.testing.assert_array_equal(model.classes_, np.unique(given))
    assert model.predict(X).dtype == given.dtype
    assert model.score(X, given) > 0.9


def test_object_labels(iris):
    X, y = iris
    given = np.array(["a", "b", "c"], dtype=object)[y]
    model = SVC().fit(X, given)
    assert model.predict(X).dtype == object


def test_a_float32_array_is_not_copied():
    # Peak memory of what Python allocates while fitting: far less than the array.
    import tracemalloc

    rng = np.random.RandomState(0)
    X = rng.rand(20_000, 100).astype(np.float32)
    y = (X[:, 0] > 0.5).astype(int)
    for estimator in (SVC(max_iter=10), SVR(max_iter=10), OneClassSVM(nu=0.01, max_iter=10)):
        tracemalloc.start()
        with pytest.warns(Warning):
            estimator.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # Checking for NaN takes one pass without a copy; labels and weights are vectors.
        assert peak < 0.25 * X.nbytes, (type(estimator), peak, X.nbytes)
