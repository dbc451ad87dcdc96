"""Large-margin chains: input, losses, constraints, files."""

import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import widemargin
from widemargin import ChainClustering, ChainSVC, StructuredSVM

WORDS = [
    ["the", "dog", "barks"],
    ["dogs", "bark"],
    ["the", "bark"],
    ["a", "dog", "dogs", "the", "cat"],
]
TAGS = [["D", "N", "V"], ["N", "V"], ["D", "N"], ["D", "N", "V", "D", "N"]]


def items(words):
    return [{"word": word, "first": k == 0} for k, word in enumerate(words)]


def fitted(**parameters):
    return ChainSVC(C=1.0, **parameters).fit([items(words) for words in WORDS], TAGS)


def test_all_forms_of_input_are_one():
    as_lists = [
        [[f"word:{word}", *(["first"] if k == 0 else [])] for k, word in enumerate(words)]
        for words in WORDS
    ]
    names = sorted({name for sequence in as_lists for item in sequence for name in item})
    arrays = [
        np.array([[float(name in item) for name in names] for item in sequence])
        for sequence in as_lists
    ]
    models = [fitted(tol=1e-6)]
    models += [ChainSVC(C=1.0, tol=1e-6).fit(X, TAGS) for X in (as_lists, arrays)]
    nested = [[{"word": {word: 1.0}, "first": k == 0} for k, word in enumerate(w)] for w in WORDS]
    models.append(ChainSVC(C=1.0, tol=1e-6).fit(nested, TAGS))
    for model in models[1:]:
        assert model.objective_ == pytest.approx(models[0].objective_, rel=1e-5)
        np.testing.assert_allclose(model.transitions_, models[0].transitions_, atol=1e-2)
    assert models[0].predict([items(words) for words in WORDS]) == TAGS
    assert models[2].predict(arrays) == TAGS
    assert models[0].score([items(words) for words in WORDS], TAGS) == 1.0


def test_the_gap_and_the_n_best():
    model = fitted(tol=1e-4)
    assert 0 <= model.gap_ <= 1e-4
    assert model.status_ == "solved"
    assert list(model.classes_) == ["D", "N", "V"]
    lists = model.predict_n_best([items(["the", "dog"])], 20)[0]
    assert sorted(tuple(tags) for tags, _ in lists) == sorted(product("DNV", repeat=2))
    scores = [score for _, score in lists]
    assert scores == sorted(scores, reverse=True)
    assert lists[0][0] == model.predict([items(["the", "dog"])])[0]


def test_unseen_names_are_ignored_and_numbers_are_values():
    model = fitted()
    assert model.predict([[{"unseen": "x"}, {"word": "cat", "other": 3.0}]])
    X, y = [[{"x": 1.0}, {"x": -2.0}], [{"x": -1}]], [[1, 0], [0]]
    model = ChainSVC(C=10.0).fit(X, y)
    assert model.predict(X) == y
    assert model.classes_.dtype.kind == "i"


def test_constraints_and_losses():
    y = [["B-X", "I-X", "O"], ["B-X", "O"], ["O", "B-X"], ["B-X", "I-X", "I-X", "O", "B-X"]]
    X = [items(words) for words in WORDS]
    bio = ChainSVC(C=1.0, constraints="bio").fit(X, y)
    pairs = [(None, "I-X"), ("O", "I-X")]
    listed = ChainSVC(C=1.0, constraints=pairs).fit(X, y)
    np.testing.assert_array_equal(bio.transitions_, listed.transitions_)
    assert np.isneginf(bio.transitions_[2, 1])
    for tags, _ in bio.predict_n_best(X, 50)[3]:
        assert tags[0] != "I-X"
        assert all(a != "O" or b != "I-X" for a, b in pairwise(tags))
    with pytest.raises(ValueError, match="'I-X' at the beginning of sequence 1"):
        ChainSVC(constraints="bio").fit(X, [["I-X", "I-X", "O"], *y[1:]])
    zero_one = 1.0 - np.eye(3)
    tables = [ChainSVC(C=1.0, tol=1e-6, loss=loss).fit(X, y) for loss in ("hamming", zero_one)]
    assert tables[0].objective_ == tables[1].objective_
    with pytest.raises(ValueError, match="every pair of tags"):
        ChainSVC(loss=[[0.0]]).fit(X, y)


def test_unknown_tags_kernels_and_weights():
    X = [items(words) for words in WORDS]
    partly = [["D", None, "V"], *TAGS[1:]]
    with pytest.raises(ValueError, match="none at position 2 of sequence 1"):
        ChainSVC().fit(X, partly)
    assert ChainSVC(unknown="cut").fit(X, partly).score(X, partly) > 0.5
    rng = np.random.RandomState(0)
    y = [rng.randint(2, size=6).tolist() for _ in range(12)]
    arrays = [rng.randn(6, 2) for _ in y]
    for tags, rows in zip(y, arrays, strict=True):
        # One tag inside a circle, the other outside: no linear score tells them apart.
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        rows *= (1 + np.array(tags))[:, None]
    curved = ChainSVC(C=10.0, kernel="rbf", gamma=1.0).fit(arrays, y)
    assert curved.score(arrays, y) == 1.0
    assert ChainSVC(C=10.0).fit(arrays, y).score(arrays, y) < 0.9
    twice = ChainSVC(C=0.5, tol=1e-6).fit(X, TAGS, sample_weight=[2, 2, 2, 2])
    assert twice.objective_ == pytest.approx(fitted(tol=1e-6).objective_, rel=1e-5)


def test_files_pickles_and_clones(tmp_path):
    model = fitted()
    X = [items(words) for words in WORDS]
    model.save(tmp_path / "chain.wm")
    for again in (widemargin.load(tmp_path / "chain.wm"), pickle.loads(pickle.dumps(model))):
        assert again.predict(X) == model.predict(X)
        assert again.gap_ == model.gap_
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        ChainSVC().predict(X)


def test_what_cannot_be_read_says_where():
    cases = [
        ([], [], "at least one sequence"),
        ([[]], [[]], "sequence 0 of X is empty"),
        ([[{"a": 1}]], [["x", "y"]], "1 positions in X and 2 tags"),
        ([[{"a": 1}]], [], "y has 0 sequences"),
        ([[{"a": 1}]], [["x"]], "only 'x'"),
        ([[{"a": 1}, {"a": float("nan")}]], [["x", "y"]], "finite"),
        ([np.zeros((2, 2)), np.zeros((2, 3))], [[0, 1], [0, 1]], "sequence 1 of X has the shape"),
    ]
    for X, y, message in cases:
        with pytest.raises(ValueError, match=message):
            ChainSVC().fit(X, y)
    with pytest.raises(TypeError, match="position 0 of sequence 0"):
        ChainSVC().fit([["word"]], [["x"]])
    with pytest.warns(ConvergenceWarning):
        ChainSVC(C=10.0, tol=1e-9, max_iter=1).fit([items(w) for w in WORDS], TAGS)


def test_alternation_lowers_the_objective():
    rng = np.random.RandomState(3)
    states = [[int(k + offset) % 2 for k in range(8)] for offset in rng.randint(2, size=10)]
    X = [[{f"s{state ^ int(rng.rand() < 0.1)}": 1.0} for state in path] for path in states]
    start = [[tag ^ int(rng.rand() < 0.3) for tag in path] for path in states]
    model = ChainClustering(C=1.0).fit(X, start)
    assert model.status_ == "solved"
    rises = np.diff(model.objectives_)
    assert len(rises) > 0
    assert (rises <= 1e-3 * np.array(model.objectives_[1:])).all()

    def wrong(tags):
        share = np.mean(
            [
                a != b
                for own, true in zip(tags, states, strict=True)
                for a, b in zip(own, true, strict=True)
            ]
        )
        return min(share, 1 - share)

    assert wrong(model.labels_) < wrong(start) / 2
    with pytest.raises(ValueError, match="only '0'"):
        ChainClustering().fit(X, [[0] * 8] * 10)


class Sets:
    """Sets of two labels with a score for having both."""

    outputs = tuple(product((0, 1), repeat=2))

    def joint_features(self, x, y):
        return np.concatenate([y[0] * x, y[1] * x, [y[0] * y[1]]])

    def loss(self, y, u):
        return (y[0] != u[0]) + (y[1] != u[1])

    def decode(self, x, w, y=None):
        def value(u):
            return w @ self.joint_features(x, u) + (0 if y is None else self.loss(y, u))

        return max(self.outputs, key=value)


def test_structures_of_the_user():
    rng = np.random.RandomState(1)
    X = rng.randn(40, 3)
    y = [(int(x[0] > 0), int(x[0] + x[1] > 0)) for x in X]
    model = StructuredSVM(Sets(), 7, C=10.0, tol=1e-4).fit(X, y)
    assert 0 <= model.gap_ <= 1e-4
    # The bound is one: the primal objective of any weights is above it.
    for w in (model.coef_, 0.9 * model.coef_, rng.randn(7)):
        losses = 0.0
        for x, t in zip(X, y, strict=True):
            u = Sets().decode(x, w, t)
            features = Sets().joint_features
            losses += Sets().loss(t, u) - w @ (features(x, t) - features(x, u))
        primal = 0.5 * w @ w + 10.0 * losses
        assert primal >= model.objective_ * (1 - 1e-9)
    assert sum(a == b for a, b in zip(model.predict(X), y, strict=True)) >= 36

    class Broken(Sets):
        def decode(self, x, w, y=None):
            raise KeyError("no answer")

    with pytest.raises(KeyError, match="no answer"):
        StructuredSVM(Broken(), 7).fit(X, y)
    with pytest.raises(ValueError, match="joint_features returned 7 values"):
        StructuredSVM(Sets(), 8).fit(X, y)


def test_the_file_keeps_the_parameters(tmp_path):
    settings = {"constraints": "bio", "unknown": "cut", "max_iter": 77, "tol": 0.02}
    loss = (1.0 - np.eye(3)).tolist()
    y = [["B-X", "I-X", "O"], ["B-X", "O"], ["O", "B-X"], ["B-X", "I-X", "I-X", "O", "B-X"]]
    X = [items(words) for words in WORDS]
    model = ChainSVC(C=1.5, loss=loss, **settings).fit(X, y)
    model.save(tmp_path / "chain.wm")
    again = widemargin.load(tmp_path / "chain.wm")
    own = again.get_params()
    assert {name: own[name] for name in settings} == settings
    assert own["C"] == 1.5
    np.testing.assert_array_equal(np.reshape(own["loss"], (3, 3)), loss)
    pairs = [(None, "I-X"), ("O", "I-X")]
    listed = ChainSVC(C=1.5, constraints=pairs).fit(X, y)
    listed.save(tmp_path / "listed.wm")
    found = widemargin.load(tmp_path / "listed.wm").get_params()["constraints"]
    assert sorted(found, key=str) == sorted(pairs, key=str)


def test_chains_are_not_trained_on_rows():
    settings = ChainSVC()._settings()
    with pytest.raises(ValueError, match="chain-svc, which is trained on sequences"):
        widemargin._core.fit(settings, np.eye(2), (np.array([0, 1]), [0, 1]))
