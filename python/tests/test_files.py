"""Models that travel: pickle, joblib, native files, the command line and LIBSVM's programs."""

import copy
import pickle
import shutil
import subprocess
import warnings
from pathlib import Path

import cloudpickle
import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_diabetes, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import widemargin
from widemargin import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, OnlineSVC

ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVDD]
ROOT = Path(__file__).resolve().parents[2]


def scaled(load=load_wine):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def values(estimator, X):
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(X)
    return estimator.predict(X)


@pytest.mark.parametrize("Estimator", ALL)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pickle_joblib_and_deepcopy(Estimator, container, dtype, tmp_path):
    X, y = scaled()
    X = container(np.where(np.abs(X) < 1.2, 0, X).astype(dtype))
    model = Estimator(nu=0.2).fit(X, y) if Estimator is NuSVC else Estimator().fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    for again in (
        pickle.loads(pickle.dumps(model)),
        joblib.load(tmp_path / "model.joblib"),
        copy.deepcopy(model),
    ):
        np.testing.assert_array_equal(values(again, X), values(model, X))
        assert again.support_vectors_.dtype == dtype
        assert again.get_params() == model.get_params()


def test_pickles_with_functions():
    X, y = scaled()
    model = SVC(kernel=lambda a, b: a @ b.T).fit(X, y)
    again = pickle.loads(cloudpickle.dumps(model))
    np.testing.assert_allclose(values(again, X), values(model, X), rtol=1e-9)


@pytest.mark.parametrize("Estimator", ALL)
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "2*laplacian(gamma=0.1) + rbf*linear"])
def test_native_files(Estimator, kernel, tmp_path):
    X, y = scaled()
    parameters = {"nu": 0.2} if Estimator is NuSVC else {}
    model = Estimator(kernel=kernel, coef0=0.5, tol=1e-4, **parameters).fit(X, y)
    model.save(tmp_path / "model.wm")
    again = widemargin.load(tmp_path / "model.wm")
    assert type(again) is Estimator
    np.testing.assert_array_equal(values(again, X), values(model, X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.tol == 1e-4
    # What was loaded can be trained again, to the same model.
    np.testing.assert_allclose(values(again.fit(X, y), X), values(model, X), atol=1e-6)


def test_files_keep_words_names_and_probabilities(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = scaled()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    words = np.array(["red", "white", "rosé"])[y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = SVC(probability=True, random_state=0, C=3).fit(frame, words)
    model.save(tmp_path / "wine.wm")
    again = widemargin.load(tmp_path / "wine.wm")
    assert again.C == 3
    np.testing.assert_array_equal(again.classes_, model.classes_)
    np.testing.assert_array_equal(again.feature_names_in_, model.feature_names_in_)
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame[frame.columns[::-1]])


@pytest.fixture(scope="module")
def program():
    """The command line, built by the tests of Rust that run before."""
    path = ROOT / "target" / "debug" / "widemargin"
    if not path.exists():
        pytest.skip("the command line has not been built (cargo build)")
    return path


def run(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True)


def test_the_command_line_reads_our_files(program, tmp_path):
    X, y = scaled(load_iris)
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    model = SVC(C=10).fit(X, words)
    model.save(tmp_path / "iris.wm")
    np.save(tmp_path / "rows.npy", X)
    run(
        program,
        "predict",
        tmp_path / "rows.npy",
        "--model",
        tmp_path / "iris.wm",
        "--output",
        tmp_path / "answers.txt",
    )
    answers = (tmp_path / "answers.txt").read_text().split()
    assert answers == list(model.predict(X))


def test_we_read_files_of_the_command_line(program, tmp_path):
    run(
        program,
        "train",
        ROOT / "data" / "iris.csv",
        "--c",
        "10",
        "--scale",
        "standard",
        "--model",
        tmp_path / "iris.wm",
    )
    model = widemargin.load(tmp_path / "iris.wm")
    table = np.genfromtxt(ROOT / "data" / "iris.csv", delimiter=",", dtype=str, skip_header=1)
    rows, labels = table[:, :-1].astype(float), table[:, -1]
    assert model.C == 10
    assert set(model.classes_) == set(labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the file knows names of features
        assert model.score(rows, labels) > 0.95
    # The scaling is part of the model, and of its ONNX graph.
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    (answers,) = session.run(["predict"], {"X": rows})
    assert np.mean(answers == labels) > 0.95


def test_all_in_one_machines_of_the_command_line(program, tmp_path):
    data = ROOT / "data" / "iris.csv"
    model_file, answers_file = tmp_path / "iris.wm", tmp_path / "answers.txt"
    run(program, "train", data, "--machine", "ww", "--model", model_file)
    run(program, "predict", data, "--model", model_file, "--output", answers_file)
    model = widemargin.load(model_file)
    assert type(model).__name__ == "MulticlassSVC"
    assert model.machine == "ww"
    table = np.genfromtxt(data, delimiter=",", dtype=str, skip_header=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the file knows names of features
        answers = model.predict(table[:, :-1].astype(float))
    assert list(answers) == answers_file.read_text().split()


@pytest.mark.parametrize("Estimator", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_libsvm_predicts_the_same(Estimator, tmp_path):
    svm_predict = shutil.which("svm-predict")
    if svm_predict is None:
        pytest.skip("LIBSVM's programs are not installed")
    X, y = scaled(load_diabetes if Estimator in (SVR, NuSVR) else load_wine)
    model = Estimator(nu=0.2).fit(X, y) if Estimator is NuSVC else Estimator().fit(X, y)
    (tmp_path / "model").write_text(model.to_libsvm())
    dump_svmlight_file(X, y, str(tmp_path / "rows"), zero_based=False)
    run(svm_predict, tmp_path / "rows", tmp_path / "model", tmp_path / "answers")
    answers = np.loadtxt(tmp_path / "answers")
    np.testing.assert_allclose(answers, model.predict(X), rtol=1e-4)


def test_libsvm_files_come_back_with_ascending_classes(tmp_path):
    X, y = scaled(load_wine)
    model = SVC().fit(X, 2 - y)
    text = model.to_libsvm()
    (tmp_path / "model").write_text(text)
    again = widemargin.load(tmp_path / "model")
    np.testing.assert_array_equal(again.classes_, [0, 1, 2])
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-9)
    # The same model with the two classes of a binary problem the other way round, as svm-train
    # writes them when the second is seen first.
    binary = SVC().fit(X, y > 0)
    (tmp_path / "binary").write_text(binary.to_libsvm().replace("label 0 1", "label 1 0"))
    turned = widemargin.load(tmp_path / "binary")
    np.testing.assert_array_equal(turned.classes_, [0, 1])
    np.testing.assert_allclose(turned.decision_function(X), -binary.decision_function(X), atol=1e-9)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", ValueError, "expected a widemargin, LIBSVM or LIBLINEAR model file, but it is empty"),
        (b"hello", ValueError, "begins with"),
        (None, FileNotFoundError, "No such file"),
    ],
)
def test_bad_files(content, error, message, tmp_path):
    path = tmp_path / "model"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=message):
        widemargin.load(path)


def test_a_damaged_file_is_refused(tmp_path):
    X, y = scaled()
    SVC().fit(X, y).save(tmp_path / "model.wm")
    content = bytearray((tmp_path / "model.wm").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model.wm").write_bytes(content)
    with pytest.raises(ValueError, match="checksum"):
        widemargin.load(tmp_path / "model.wm")


def test_saving_needs_a_fit_and_a_kernel_of_our_own(tmp_path):
    X, y = scaled()
    with pytest.raises(Exception, match="not fitted"):
        SVC().save(tmp_path / "model.wm")
    with pytest.raises(ValueError, match="Python function"):
        SVC(kernel=lambda a, b: a @ b.T).fit(X, y).save(tmp_path / "model.wm")
    with pytest.raises(OSError, match="No such file"):
        SVC().fit(X, y).save(tmp_path / "missing" / "model.wm")


@pytest.mark.parametrize("scale", ["standard", "minmax"])
@pytest.mark.parametrize("machine", ["linear-svc", "logistic", "linear-svr"])
def test_scaled_linear_models_of_the_command_line(program, machine, scale, tmp_path):
    X, y = load_iris(return_X_y=True)
    data, model = tmp_path / "iris.txt", tmp_path / "iris.wm"
    dump_svmlight_file(X, y, str(data), zero_based=False)
    run(program, "train", data, "-s", machine, "--scale", scale, "-o", model, "--quiet", "--dense")
    told = run(
        program, "predict", data, "--model", model, "--decision-values", "--quiet", "--dense"
    )
    table = [line.split("\t") for line in told.stdout.splitlines()[1:]]
    again = widemargin.load(model)
    if machine == "linear-svr":
        np.testing.assert_allclose(again.predict(X), [float(row[1]) for row in table], rtol=1e-6)
        return
    assert (again.predict(X) == [int(row[0]) for row in table]).all()
    expected = np.array([[float(value) for value in row[1:]] for row in table])
    np.testing.assert_allclose(again.decision_function(X), expected, rtol=1e-5, atol=1e-6)


def test_two_classes_of_a_scaled_linear_model(program, tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < 2] + 5, y[y < 2]
    data, model = tmp_path / "iris.txt", tmp_path / "iris.wm"
    dump_svmlight_file(X, y, str(data), zero_based=False)
    run(
        program, "train", data, "--linear", "--scale", "standard", "-o", model, "--quiet", "--dense"
    )
    again = widemargin.load(model)
    assert again.coef_.shape == (1, 4)
    assert (again.predict(X) == y).all()


@pytest.mark.parametrize("name", ["words", "words-linear"])
def test_models_with_word_columns(program, name, tmp_path):
    fixtures = ROOT / "crates" / "widemargin" / "tests" / "fixtures" / "models"
    told = run(program, "predict", fixtures / "words.csv", "--model", fixtures / f"{name}.wm", "-q")
    again = widemargin.load(fixtures / f"{name}.wm")
    names = again.feature_names_in_.tolist()
    lines = [line.split(",") for line in (fixtures / "words.csv").read_text().splitlines()]
    rows = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]

    def value(row, name):
        column, _, word = name.partition("=")
        return float(row[column] == word) if word else float(row[column])

    X = np.array([[value(row, name) for name in names] for row in rows])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        assert [str(label) for label in again.predict(X)] == told.stdout.split()


@pytest.mark.parametrize("strategy", ["blocks", "random-all"])
def test_online_machines_come_back_as_such_and_learn_on(strategy, tmp_path):
    X, y = scaled(load_iris)
    model = widemargin.OnlineSVC(machine="cs", strategy=strategy, random_state=0).fit(X, y)
    model.save(tmp_path / "online.wm")
    again = widemargin.load(tmp_path / "online.wm")
    assert type(again) is widemargin.OnlineSVC
    assert (again.machine, again.strategy) == ("cs", strategy)
    np.testing.assert_array_equal(values(again, X), values(model, X))
    again.partial_fit(X, y)
    assert (again.predict(X) == y).mean() > 0.9
    batch = widemargin.MulticlassSVC(machine="cs").fit(X, y)
    batch.save(tmp_path / "batch.wm")
    assert type(widemargin.load(tmp_path / "batch.wm")) is widemargin.MulticlassSVC


@pytest.mark.parametrize(
    "model",
    [
        SVC(),
        SVR(),
        widemargin.LinearSVC(),
        widemargin.OnlineSVC(random_state=0),
        widemargin.KNeighborsClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_skops_keeps_fitted_estimators(model, tmp_path):
    skops = pytest.importorskip("skops.io")
    X, y = scaled(load_iris)
    model.fit(X, y)
    skops.dump(model, tmp_path / "model.skops")
    trusted = skops.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith("widemargin.") for name in trusted), trusted
    again = skops.load(tmp_path / "model.skops", trusted=trusted)
    np.testing.assert_array_equal(values(again, X), values(model, X))


@pytest.mark.parametrize("strategy", ["blocks", "whole-pattern"])
def test_an_online_machine_comes_back_as_one(tmp_path, strategy):
    X, y = load_iris(return_X_y=True)
    machine = OnlineSVC(machine="cs", C=3.0, strategy=strategy, random_state=0).fit(X, y)
    machine.save(tmp_path / "online.wm")
    again = widemargin.load(tmp_path / "online.wm")
    assert isinstance(again, OnlineSVC)
    assert (again.machine, again.C, again.strategy) == ("cs", 3.0, strategy)
    assert (again.predict(X) == machine.predict(X)).all()


KINDS = [
    "c-svc",
    "nu-svc",
    "one-class",
    "epsilon-svr",
    "nu-svr",
    "svdd",
    "ls-svc",
    "ls-svr",
    "ww",
    "cs",
    "llw",
    "adm",
    "atm",
    "ats",
    "mmr",
    "ova",
    "reinforced",
    "linear-svc",
    "logistic",
    "linear-svr",
    "rank-svm",
    "fisher",
    "kernel-fisher",
    "gmm",
    "certified-gmm",
    "gmm-bayes",
    "knn",
    "knn-regressor",
    "parzen",
    "density",
    "pnn",
    "kmeans",
    "spectral",
    "mmc",
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_machine_of_the_command_line_comes_back_and_goes_there(program, kind, tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[25:125], y[25:125]
    data, model, again = tmp_path / "iris.txt", tmp_path / "iris.wm", tmp_path / "again.wm"
    dump_svmlight_file(X, y, str(data), zero_based=False)
    for options in ([], ["--scale", "standard"]):
        run(program, "train", data, "-s", kind, *options, "-o", model, "-q", "--dense")
        told = run(program, "predict", data, "--model", model, "-q", "--dense").stdout
        estimator = widemargin.load(model)
        predict = getattr(estimator, "predict", None) or estimator.score_samples
        np.testing.assert_allclose(
            np.ravel(predict(X)), np.array(told.split(), float), rtol=1e-5, atol=1e-6
        )
        estimator.save(again)
        assert run(program, "predict", data, "--model", again, "-q", "--dense").stdout == told


@pytest.mark.parametrize(
    "options",
    [
        ["--robust", "ramp"],
        ["--robust", "eta"],
        ["--robust", "trimmed", "--scale", "standard"],
        ["--robust", "centroid"],
        ["--robust", "leave-one-out"],
        ["--robust", "power"],
        ["--kernels", "linear, rbf(gamma=0.1)"],
        ["--kernels", "linear, rbf(gamma=0.1)", "--weights", "signed"],
        ["--kernels", "linear, rbf(gamma=0.1)", "-s", "cs", "--scale", "minmax"],
        ["--kernels", "linear, rbf(gamma=0.1)", "-s", "epsilon-svr"],
        ["--kernels", "linear, rbf(gamma=0.1)", "-s", "one-class"],
        ["--view", "sepal=1-2:linear", "--view", "petal=3-4:rbf:gamma=1"],
        ["--kernels", "linear, rbf(gamma=0.1)", "--unlabelled", "0"],
        ["-s", "semi-svc", "--unlabelled", "0"],
        ["-s", "semi-svc", "--unlabelled", "0", "--kernel", "rbf", "--scale", "standard"],
        ["-s", "semi-svc", "--unlabelled", "0", "--labelling", "relaxation"],
        ["-s", "gmm-bayes", "--unlabelled", "0", "--components", "2"],
    ],
    ids=" ".join,
)
def test_newer_machines_of_the_command_line_come_back_and_go_there(program, options, tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[25:125], 1 + y[25:125]
    if {"signed", "relaxation", "--robust"} & set(options):
        # Two classes.
        X, y = X[25:], y[25:]
    if "--unlabelled" in options:
        y = np.where(np.arange(len(y)) % 3 > 0, 0, y)
    data, model, again = tmp_path / "iris.txt", tmp_path / "iris.wm", tmp_path / "again.wm"
    dump_svmlight_file(X, y, str(data), zero_based=False)
    run(program, "train", data, *options, "-o", model, "-q", "--dense")
    told = run(program, "predict", data, "--model", model, "-q", "--dense").stdout
    estimator = widemargin.load(model)
    predict = getattr(estimator, "predict", None) or estimator.score_samples
    np.testing.assert_allclose(
        np.ravel(predict(X)), np.array(told.split(), float), rtol=1e-5, atol=1e-6
    )
    estimator.save(again)
    assert run(program, "predict", data, "--model", again, "-q", "--dense").stdout == told


@pytest.mark.parametrize("options", [["--linear", "--approximate", "rff:20"]], ids=" ".join)
def test_models_without_an_estimator_say_so(program, options, tmp_path):
    X, y = load_iris(return_X_y=True)
    data, model = tmp_path / "iris.txt", tmp_path / "iris.wm"
    dump_svmlight_file(X, y, str(data), zero_based=False)
    run(program, "train", data, *options, "-o", model, "-q")
    with pytest.raises(ValueError, match=r"no estimator.*command line"):
        widemargin.load(model)
