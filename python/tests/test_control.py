"""Progress, limits, interruption, threads and warm starts."""

import itertools
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC as Reference

from widemargin import SVC, SVDD, SVR, History, NuSVC, NuSVR, OneClassSVM

ALL = [SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVDD]


@pytest.fixture(scope="module")
def hard():
    """A problem that takes long at a tight tolerance."""
    X, y = make_classification(4000, 20, n_informative=4, flip_y=0.4, random_state=0)
    return X.astype(np.float32), y


def test_callbacks_see_the_violation_fall():
    X, y = load_breast_cancer(return_X_y=True)
    history = History()
    model = SVC(kernel="rbf", gamma=1e-5, C=10, callbacks=[history]).fit(X, y)
    steps = history.steps
    assert steps[-1].violation < steps[0].violation
    assert steps[-1].violation <= model.tol
    assert steps[-1].objective == pytest.approx(model.objective_, rel=1e-3)
    assert all(a.elapsed <= b.elapsed for a, b in itertools.pairwise(steps))


def test_a_callback_stops_the_training_with_a_usable_model(hard):
    X, y = hard
    seen = []

    def stop(progress):
        seen.append(progress)
        return len(seen) >= 1

    model = SVC(C=1000, gamma=0.1, tol=1e-6, callbacks=stop).fit(X, y)
    assert model.status_ == "interrupted"
    assert model.fit_status_ == 1
    # However early it was stopped, the point is feasible and the model is what it says.
    coefficients = model.dual_coef_.ravel()
    assert 0 < np.abs(coefficients).max() <= 1000
    assert abs(coefficients.sum()) <= 1e-6 * np.abs(coefficients).sum()
    values = rbf_kernel(X, model.support_vectors_, gamma=0.1) @ coefficients + model.intercept_
    assert values == pytest.approx(model.decision_function(X), rel=1e-3, abs=1e-3 * values.std())


def test_an_exception_in_a_callback_is_the_caller_s():
    X, y = load_iris(return_X_y=True)

    def fail(progress):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        SVC(callbacks=fail).fit(X, y)


def test_callbacks_run_on_the_calling_thread(hard):
    threads = set()
    X, y = hard
    SVC(callbacks=lambda progress: threads.add(threading.get_ident()), n_jobs=2).fit(X, y % 3)
    assert threads == {threading.get_ident()}


def test_verbose_prints(capsys):
    X, y = load_iris(return_X_y=True)
    SVC(verbose=True).fit(X, y)
    assert "solved" in capsys.readouterr().out
    SVC().fit(X, y)
    assert capsys.readouterr().out == ""


def test_verbose_in_a_notebook_replaces_one_output(capsys, monkeypatch):
    shown = []

    class Handle:
        def update(self, output):
            shown.append(output)

    def display(output, display_id):
        assert display_id is True
        shown.append(output)
        return Handle()

    package, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    package.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    inner.HTML, inner.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    monkeypatch.setattr("widemargin._progress._LINE_PERIOD", 0.0)
    X, y = load_iris(return_X_y=True)
    SVC(verbose=True).fit(X, y)
    assert len(shown) > 1
    assert "problem 1 of 3" in shown[0]
    assert "<progress value='0' max='3'>" in shown[0]
    assert "solved" in shown[-1]
    assert capsys.readouterr().out == ""
    # A terminal's IPython has no kernel.
    package.get_ipython = types.SimpleNamespace
    SVC(verbose=True).fit(X, y)
    assert "solved" in capsys.readouterr().out


def test_the_warning_of_probability_names_its_library():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(FutureWarning, match="deprecated in scikit-learn 1.9"):
        model = SVC(probability=True).fit(X, y)
    with pytest.warns(FutureWarning, match="version 1.9 of scikit-learn"):
        model.probA_  # noqa: B018


def test_time_limit(hard):
    X, y = hard
    model = SVC(C=1e6, gamma=0.01, tol=1e-7, max_time=0.3, precision="double")
    started = time.monotonic()
    with pytest.warns(ConvergenceWarning, match=r"terminated early \(max_time=0.3\)"):
        model.fit(X, y)
    assert time.monotonic() - started < 3
    assert model.fit_status_ == 1
    assert model.status_ == "time limit reached"
    assert model.score(X, y) > 0.5


def test_iteration_limit(hard):
    X, y = hard
    model = SVC(max_iter=5)
    with pytest.warns(ConvergenceWarning, match=r"terminated early \(max_iter=5\)"):
        model.fit(X, y)
    assert (model.n_iter_ <= 5).all()
    assert np.isfinite(model.decision_function(X)).all()


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
from widemargin import {name}
# A shell that put the tests into the background hands SIGINT down ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.RandomState(0)
X, y = rng.randn({rows}, 50), rng.randint(0, 2, {rows})
sent = []
def send():
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.7, send).start()
try:
    {name}(tol=1e-8, gamma=0.5, n_jobs={jobs}, {parameters}).fit(X, y)
    print("ended before the signal")
except KeyboardInterrupt:
    print(f"{{time.monotonic() - sent[0]:.3f}}")
"""


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("name", "parameters"), [("SVC", "C=1e6"), ("SVR", "C=1e6"), ("NuSVC", "nu=0.9")]
)
def test_ctrl_c_ends_within_a_second(name, parameters, jobs):
    script = INTERRUPTED.format(name=name, parameters=parameters, jobs=jobs, rows=12000)
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert "ended" not in run.stdout, run.stdout
    assert float(run.stdout) < 1.0, run.stdout + run.stderr


def test_ctrl_c_ends_a_long_prediction():
    script = INTERRUPTED.format(name="SVR", parameters="C=1", jobs=1, rows=3000)
    script = script.replace("tol=1e-8", "epsilon=0").replace(".fit(X, y)", ".fit(X, y).predict(Z)")
    script = script.replace("sent = []", "Z = np.tile(X, (200, 1))\nsent = []")
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert "ended" not in run.stdout, run.stdout
    assert float(run.stdout) < 1.0, run.stdout + run.stderr


@pytest.mark.parametrize("wish", ["vectors=3000, refine=10**6", "max_difference=1e9, refine=0"])
def test_ctrl_c_ends_a_long_compression(wish):
    script = INTERRUPTED.format(name="SVR", parameters="C=1", jobs=1, rows=6000)
    script = script.replace("tol=1e-8", "epsilon=0")
    fitted = "SVR(epsilon=0, gamma=0.5, n_jobs=1, C=1).fit(X, y)"
    assert fitted in script
    script = script.replace(fitted, f"machine.compress({wish})")
    script = script.replace("sent = []", f"machine = {fitted}\nsent = []")
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True
    )
    assert "ended" not in run.stdout, run.stdout
    assert float(run.stdout) < 1.0, run.stdout + run.stderr


def test_the_lock_is_released_while_training(hard):
    X, y = hard
    counter = [0]
    done = threading.Event()

    def count():
        while not done.is_set():
            counter[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    started = time.monotonic()
    SVC(C=100, gamma=0.1, precision="double").fit(X, y)
    elapsed = time.monotonic() - started
    done.set()
    thread.join()
    assert counter[0] > 20 * elapsed


def test_several_threads_train_at_once():
    X, y = load_iris(return_X_y=True)
    expected = SVC().fit(X, y).decision_function(X)
    failures = []

    def work(seed):
        for _ in range(20):
            found = SVC(n_jobs=1 + seed % 2, random_state=seed).fit(X, y).decision_function(X)
            if not np.array_equal(found, expected):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("Estimator", ALL)
def test_threads_do_not_change_the_result(Estimator):
    X, y = load_iris(return_X_y=True)
    one = Estimator(n_jobs=1).fit(X, y)
    two = Estimator(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


@pytest.mark.parametrize("Estimator", ALL)
def test_a_warm_start_at_the_optimum_has_nothing_to_do(Estimator):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    cold = Estimator(warm_start=True, gamma=0.05).fit(X, y)
    steps, values = np.sum(cold.n_iter_), cold.predict(X)
    cold.fit(X, y)
    assert np.sum(cold.n_iter_) <= 0.1 * steps + 2
    np.testing.assert_allclose(cold.predict(X), values, atol=0.05)


def test_a_warm_start_finds_the_optimum_of_the_new_problem_in_fewer_steps():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    first = {"gamma": 0.05, "tol": 1e-6}
    steps = {"C": np.zeros(2), "gamma": np.zeros(2)}
    for name, value in [("C", 1.3), ("C", 0.7), ("gamma", 0.055), ("gamma", 0.06), ("gamma", 0.07)]:
        change = {name: value}
        warm = SVC(warm_start=True, **first).fit(X, y).set_params(**change).fit(X, y)
        reference = Reference(**first).set_params(**change).fit(X, y)
        values, expected = warm.decision_function(X), reference.decision_function(X)
        np.testing.assert_allclose(values, expected, atol=1e-4)
        cold = SVC(**first).set_params(**change).fit(X, y)
        steps[name] += warm.n_iter_.sum(), cold.n_iter_.sum()
    # A Newton step counts as one step for each variable, so that one problem may need some more.
    for warm, cold in steps.values():
        assert warm < cold, steps


def test_a_warm_start_takes_more_rows_and_other_classes():
    X, y = load_iris(return_X_y=True)
    model = SVC(warm_start=True).fit(X[:120], y[:120])
    model.fit(X, y)
    assert model.score(X, y) == SVC().fit(X, y).score(X, y)
    model.fit(X, (y > 0).astype(int))
    assert model.score(X, y > 0) == 1.0


def test_interrupt_handlers_of_others_stay():
    before = signal.getsignal(signal.SIGINT)
    X, y = load_iris(return_X_y=True)
    SVC().fit(X, y)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_fork_may_train_after_its_parent_did():
    script = textwrap.dedent(
        """
        import multiprocessing
        from sklearn.datasets import load_iris
        from widemargin import SVC
        X, y = load_iris(return_X_y=True)
        def score(c):
            return SVC(C=c, n_jobs=2).fit(X, y).score(X, y)
        here = [score(c) for c in (1, 10)]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(score, [1, 10]) == here)
        """
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == "True", run.stderr
