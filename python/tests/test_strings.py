"""Kernels of strings against their definitions in plain Python, and as parts of machines."""

import itertools
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC as PeerSVC

import widemargin
from widemargin import SVC, SVR, LinearSVC, OneClassSVM, StringKernel, SVCSearchCV, tune

RNG = np.random.default_rng(7)
WORDS = ["".join(RNG.choice(list("abé"), size=n)) for n in RNG.integers(0, 9, size=14)] + ["", "a"]


def spectrum(s, t, k):
    return sum(s[i : i + k] == t[j : j + k] for i in places(s, k) for j in places(t, k))


def places(s, k):
    return range(len(s) - k + 1)


def mismatch(s, t, k, m):
    def near(word, text):
        far = (sum(a != b for a, b in zip(text[i:], word, strict=False)) for i in places(text, k))
        return sum(differ <= m for differ in far)

    return sum(near(word, s) * near(word, t) for word in itertools.product("abé", repeat=k))


def subsequence(s, t, k, decay):
    """Return the sum over pairs of increasing lists of places."""
    total = 0.0
    for a in itertools.combinations(range(len(s)), k):
        for b in itertools.combinations(range(len(t)), k):
            if all(s[i] == t[j] for i, j in zip(a, b, strict=True)):
                total += decay ** (a[-1] - a[0] + b[-1] - b[0] + 2)
    return total


def alignment(s, t, beta, open_, extend):
    """Return the sum of Saigo et al. by their recurrences, written with dictionaries."""
    M, X, Y = (
        dict.fromkeys(itertools.product(range(len(s) + 1), range(len(t) + 1)), 0.0) for _ in "MXY"
    )
    for i, j in itertools.product(range(1, len(s) + 1), range(1, len(t) + 1)):
        score = 1.0 if s[i - 1] == t[j - 1] else -1.0
        before = (i - 1, j - 1)
        M[i, j] = np.exp(beta * score) * (1 + X[before] + Y[before] + M[before])
        X[i, j] = np.exp(-beta * open_) * M[i - 1, j] + np.exp(-beta * extend) * X[i - 1, j]
        Y[i, j] = np.exp(-beta * open_) * (M[i, j - 1] + X[i, j - 1])
        Y[i, j] += np.exp(-beta * extend) * Y[i, j - 1]
    return 1 + sum(M.values())


CASES = [
    (StringKernel(length=2), lambda s, t: spectrum(s, t, 2)),
    (StringKernel(length=3, shortest=1), lambda s, t: sum(spectrum(s, t, k) for k in (1, 2, 3))),
    (StringKernel("mismatch", length=3, alphabet=3), lambda s, t: mismatch(s, t, 3, 1)),
    (StringKernel("mismatch", length=4, mismatches=2), lambda s, t: mismatch(s, t, 4, 2)),
    (StringKernel("subsequence", length=3, decay=0.6), lambda s, t: subsequence(s, t, 3, 0.6)),
    (StringKernel("alignment", beta=0.7), lambda s, t: alignment(s, t, 0.7, 2.0, 0.5)),
]


@pytest.mark.parametrize(("kernel", "definition"), CASES)
def test_values_are_those_of_the_definitions(kernel, definition):
    raw = np.array([[definition(s, t) for t in WORDS] for s in WORDS], dtype=float)
    given = clone(kernel).set_params(normalize=False)
    np.testing.assert_allclose(given(WORDS), raw, rtol=1e-10, atol=1e-12)
    scale = np.sqrt(np.diag(raw))
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num(raw / np.outer(scale, scale))
    np.testing.assert_allclose(kernel(WORDS), expected, rtol=1e-10, atol=1e-12)
    half = kernel(WORDS[:5], WORDS)
    np.testing.assert_allclose(half, expected[:5], rtol=1e-10, atol=1e-12)
    assert np.linalg.eigvalsh(expected).min() > -1e-10


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for i in range(60):
        letters = "acgt" if i % 2 else "agct"
        row = rng.choice(list("acgt"), size=rng.integers(10, 30))
        at = rng.integers(0, len(row) - 6)
        row[at : at + 6] = list((letters * 2)[:6])
        texts.append("".join(row))
        labels.append("odd" if i % 2 else "even")
    return texts, labels


@pytest.mark.parametrize("kind", ["spectrum", "mismatch", "subsequence", "alignment"])
def test_machines_take_strings_and_keep_them_in_files(task, kind, tmp_path):
    texts, labels = task
    kernel = StringKernel(kind, length=4, beta=0.5)
    model = SVC(kernel=kernel, C=10, tol=1e-6).fit(texts, labels)
    peer = PeerSVC(kernel="precomputed", C=10, tol=1e-6).fit(kernel(texts), labels)
    new = [*texts[:10], "ac" * 40, "", "né"]
    np.testing.assert_allclose(
        model.decision_function(new), peer.decision_function(kernel(new, texts)), atol=5e-3
    )
    model.save(tmp_path / "texts.wm")
    for again in (widemargin.load(tmp_path / "texts.wm"), pickle.loads(pickle.dumps(model))):
        assert (again.predict(new) == model.predict(new)).all()
        assert (again.decision_function(new) == model.decision_function(new)).all()
    assert SVR(kernel=kernel).fit(texts, np.arange(60.0)).predict(new).shape == (13,)
    assert OneClassSVM(kernel=kernel, nu=0.2).fit(texts, None).predict(new).shape == (13,)


def test_searches_pipelines_and_text_take_the_kernel(task):
    texts, labels = task
    assert cross_val_score(SVC(kernel=StringKernel(length=4), C=10), texts, labels).mean() > 0.6
    grid = {"kernel__length": [1, 4], "kernel__normalize": [True]}
    search = GridSearchCV(SVC(kernel=StringKernel(), C=10), grid, cv=3).fit(texts, labels)
    assert search.best_params_["kernel__length"] == 4
    text = SVC(kernel="spectrum(length=4)", C=10).fit(np.array(texts), labels)
    assert (
        text.predict(texts)
        == SVC(kernel=StringKernel(length=4), C=10).fit(texts, labels).predict(texts)
    ).all()
    gram = make_pipeline(StringKernel(length=4), SVC(kernel="precomputed", C=10))
    assert (gram.fit(texts, labels).predict(texts) == text.predict(texts)).all()


def test_searches_of_this_package_take_strings(task):
    texts, labels = task
    kernels = {"kernel": ["spectrum(length=1)", "spectrum(length=4)"]}
    for words in (texts, np.array(texts)):
        search = SVCSearchCV(SVC(C=10), kernels, cv=3).fit(words, labels)
        assert search.best_params_ == {"kernel": "spectrum(length=4)"}
    for kernel in ("spectrum(length=4)", StringKernel(length=4)):
        search = SVCSearchCV(SVC(kernel=kernel), {"C": [1, 10]}, cv=3).fit(texts, labels)
        assert search.best_score_ > 0.6
    for method in ("refine", "halving", "surrogate"):
        options = {"method": method, "n_iter": 4, "random_state": 0, "min_rows": 20, "cv": 3}
        search = tune(SVC(kernel="spectrum(length=4)"), texts, labels, {"C": [1, 10]}, **options)
        assert search.best_score_ > 0.6


def test_features_are_counts_for_linear_machines(task):
    texts, labels = task
    features = StringKernel(length=3, shortest=2, output="features")
    counts = features.fit_transform(texts)
    assert counts.shape == (60, len(features.get_feature_names_out()))
    exact = StringKernel(length=3, shortest=2)
    np.testing.assert_allclose((counts @ counts.T).toarray(), exact(texts), atol=1e-12)
    new = ["acgtx", "", "x" * 50]
    products = (features.transform(new) @ counts.T).toarray()
    np.testing.assert_allclose(products, exact(new, texts), atol=1e-12)
    again = pickle.loads(pickle.dumps(features))
    assert (again.transform(new) != features.transform(new)).nnz == 0
    model = make_pipeline(StringKernel(length=4, output="features"), LinearSVC(C=10))
    assert model.fit(texts, labels).score(texts, labels) == 1.0


def test_what_is_not_text_is_refused():
    words, y = ["ab", "ba", "aab"], [0, 1, 0]
    with pytest.raises(ValueError, match="list or one-dimensional array of str"):
        StringKernel()([["a", "b"]])
    with pytest.raises(ValueError, match="list or one-dimensional array of str"):
        StringKernel().fit([1, 2])
    with pytest.raises(ValueError, match="a column read as text"):
        SVC(kernel="spectrum").fit([[0.5], [1.5], [2.5]], y)
    with pytest.raises(ValueError, match="could not convert string"):
        SVC(kernel="rbf").fit([["ab"], ["ba"], ["aab"]], y)
    with pytest.raises(ValueError, match="shortest"):
        SVC(kernel=StringKernel(length=2, shortest=3)).fit(words, y)
    with pytest.raises(ValueError, match="spectrum kernel"):
        StringKernel("mismatch", length=2, output="features").fit(words)
    with pytest.raises(ValueError, match="'decay' parameter"):
        StringKernel("subsequence", decay=2.0).fit(words)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        SVC(kernel=StringKernel()).fit(words, y[:2])


def test_sequences_of_symbols_are_strings():
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 4, rng.integers(3, 9)) for _ in range(6)]
    letters = ["".join("abcd"[s] for s in sequence) for sequence in sequences]
    for kind in ("spectrum", "mismatch", "subsequence", "alignment"):
        kernel = widemargin.StringKernel(
            kind, length=2, **({"alphabet": 4} if kind == "mismatch" else {})
        )
        found = kernel(widemargin.StringKernel.encode(sequences))
        assert np.allclose(found, kernel(letters), rtol=0, atol=1e-12), kind
    assert widemargin.StringKernel.encode([[0, 1_056_767], []])[1] == ""
    for bad in ([-1], [1_056_768], [0.5], [[1]]):
        with pytest.raises(ValueError, match="symbol"):
            widemargin.StringKernel.encode([bad])
