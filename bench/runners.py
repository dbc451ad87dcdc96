"""Starts one program on one problem in a process of its own and returns what it cost.

Every runner answers a dictionary with fit_cpu, fit_wall, predict_cpu, predict_wall (seconds, data
already in memory), support_vectors, accuracy and peak_rss_mb; on request also the solution, whose
dual objective `models.py` computes.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from models import Kernel, Model, read_model
from problems import CACHE, Problem

HERE = Path(__file__).resolve().parent
OURS = Path(os.environ.get("WIDEMARGIN", HERE.parent / "target/release/widemargin"))
RUST_PEER = HERE / "peers-rs/target/release/peers-rs"
TOLERANCE = "1e-3"


def measured(command, threads: int):
    """Runs a command; its standard output and the peak resident memory in MB."""
    environment = dict(os.environ)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TBB_NUM_THREADS"):
        environment[name] = str(threads)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [str(part) for part in command], stdout=output, stderr=errors, env=environment
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if child.returncode:
            message = errors.read().decode(errors="replace")
            raise RuntimeError(f"{command[0]} ended with {child.returncode}: {message[-2000:]}")
        return output.read().decode(), usage.ru_maxrss / 1024


def dense_model(problem: Problem, support, coefficients, per_class) -> Model:
    return Model(
        "c_svc",
        Kernel("rbf", problem.gamma),
        problem.rows("train", "f64")[support],
        np.asarray(coefficients, np.float64),
        np.zeros(0),
        per_class=list(per_class),
    )


def python_peer(peer: str, problem: Problem, threads: int, want_dual: bool) -> dict:
    repeats = 20 if problem.name == "digits" else 1
    command = [sys.executable, HERE / "peer_run.py", peer, problem.name, threads, repeats]
    with tempfile.TemporaryDirectory() as folder:
        solution = Path(folder) / "solution.npz"
        text, _ = measured(command + ([solution] if want_dual else []), threads)
        result = json.loads(text.splitlines()[-1])
        if want_dual:
            arrays = np.load(solution)
            model = dense_model(
                problem, arrays["support"], arrays["coefficients"], arrays["per_class"]
            )
            result["dual"] = model.dual()
    return result


def rust_peer(_peer: str, problem: Problem, threads: int, want_dual: bool) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        text, memory = measured(
            [
                RUST_PEER,
                problem.file("train", "libsvm"),
                problem.file("test", "libsvm"),
                problem.c,
                repr(problem.gamma),
                TOLERANCE,
                problem.cache_mb,
                model,
            ],
            threads,
        )
        result = json.loads(text) | {"peak_rss_mb": memory}
        if want_dual:
            result["dual"] = read_model(model, problem.rows("test", "f32").shape[1]).dual()
    return result


def ours(_peer: str, problem: Problem, threads: int, want_dual: bool) -> dict:
    """Our command line; sparse problems are given as LIBSVM text, dense ones as f32 `.npy`."""

    def data(part):
        if problem.sparse:
            return [problem.file(part, "libsvm")]
        return [problem.file(part, "f32.npy"), "--labels", problem.file(part, "labels.npy")]

    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        model, predicted = Path(folder) / "model", Path(folder) / "predicted"
        settings = [
            *data("train"),
            "--kernel",
            "rbf",
            "--gamma",
            repr(problem.gamma),
            "--c",
            problem.c,
            "--tol",
            TOLERANCE,
            "--cache-mb",
            problem.cache_mb,
            "--threads",
            threads,
            "--json",
        ]
        train, _ = measured([OURS, "train", *settings, "--model", model], threads)
        test, _ = measured(
            [
                OURS,
                "predict",
                *data("test"),
                "--model",
                model,
                "--output",
                predicted,
                "--threads",
                threads,
                "--json",
            ],
            threads,
        )
        train, test = json.loads(train), json.loads(test)
        result = {
            "fit_cpu": train["fit_cpu_seconds"],
            "fit_wall": train["fit_seconds"],
            "predict_cpu": test["predict_cpu_seconds"],
            "predict_wall": test["predict_seconds"],
            "support_vectors": train["support_vectors"],
            "peak_rss_mb": train["peak_rss_bytes"] / 2**20,
            "accuracy": float(np.mean(np.loadtxt(predicted) == problem.labels("test"))),
            "reported_dual": train["dual"],
            "gap": train["gap"],
            "violation": train["violation"],
        }
        if want_dual:
            text = Path(folder) / "libsvm.model"
            measured(
                [OURS, "train", *settings, "--model", text, "--model-format", "libsvm"], threads
            )
            result["dual"] = read_model(text, problem.rows("test", "f32").shape[1]).dual()
    return result


RUNNERS = {
    "widemargin": ours,
    "sklearn": python_peer,
    "sklearn-csr": python_peer,
    "sklearnex": python_peer,
    "sklearnex-csr": python_peer,
    "sklearnex-f64": python_peer,
    "libsvm": python_peer,
    "libsvm-rs": rust_peer,
}


def run(peer: str, problem: Problem, threads: int, want_dual: bool = False) -> dict:
    return RUNNERS[peer](peer, problem, threads, want_dual)
