"""A grid of 10 x 10 penalties and widths with 5 folds: ours beside GridSearchCV.

Ours is `widemargin tune` (the whole program: reading, searching, printing), the peers are
`GridSearchCV` over scikit-learn's `SVC` and scikit-learn-intelex's, in process, without reading. All
run on one thread, processor seconds are compared, and the folds are each program's own stratified
ones. The warm search is also compared with the cold one of our own.

    WIDEMARGIN=path/to/widemargin WIDEMARGIN_DATA=folder python bench/tune.py satimage letter

With SAMPLE=1 the peers fit and score one fold of every cell, five times whose time stands for all:
on letter and shuttle the whole takes hours. With SCENARIOS=1 it runs the three
regularisation paths of Nguyen (2006), section 4, warm and cold, instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

PENALTIES = [0.25 * 2.0**k for k in range(10)]
WIDTHS = [0.015625 * 2.0**k for k in range(10)]


def scaled(name: str, folder: Path, program: str) -> Path:
    """Write the training rows with features in [-1, 1]."""
    source = Path(os.environ["WIDEMARGIN_DATA"]) / name / f"{name}.train.libsvm.xz"
    path = folder / f"{name}.txt"
    with path.open("w") as out:
        subprocess.run(
            [program, "svm-scale", "-l", "-1", "-u", "1", source], stdout=out, check=True
        )
    return path


def listed(values: Iterable[float]) -> str:
    return ",".join(map(str, values))


GRID = ["--grid", f"gamma={listed(WIDTHS)}", "--grid", f"c={listed(PENALTIES)}"]
REGULARISATION_PATHS = {
    "linear, C = 1..10": ["--kernel", "linear", "--grid", f"c={listed(range(1, 11))}"],
    "polynomial, degree 2..9": [
        *("--kernel", "polynomial", "--coef0", "1", "--grid", f"degree={listed(range(2, 10))}")
    ],
    "Gaussian, widths 0.01..0.1, C = 1..10": [
        *("--grid", f"gamma={listed(k / 100 for k in range(1, 11))}"),
        *("--grid", f"c={listed(range(1, 11))}"),
    ],
}


def ours(program: str, path: Path, *more: str) -> dict[str, object]:
    """Search with the program."""
    command = [program, "tune", path]
    done = subprocess.run(
        [*command, "--threads", "1", "--cache-mb", "2048", "--json", *more],
        capture_output=True,
        check=True,
    )
    found = json.loads(done.stdout)
    found["steps"] = sum(s["iterations"] for t in found["trials"] for s in t["splits"])
    return found


def machine_of(intelex: bool) -> SVC:
    """Return scikit-learn's or scikit-learn-intelex's SVC."""
    if intelex:
        from sklearnex.svm import SVC as PatchedSVC

        return PatchedSVC()
    return SVC()


def rows_of(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read rows and labels."""
    X, y = load_svmlight_file(str(path))
    return np.ascontiguousarray(X.toarray()), y


def sampled(path: Path, intelex: bool) -> float:
    """Estimate the time of a search from one fit of every cell, the folds in turn."""
    X, y = rows_of(path)
    splits = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    seconds = 0.0
    for cell in range(100):
        machine = machine_of(intelex)
        machine.set_params(C=PENALTIES[cell // 10], gamma=WIDTHS[cell % 10])
        train, test = splits[cell % 5]
        started = time.process_time()
        machine.fit(X[train], y[train]).score(X[test], y[test])
        seconds += time.process_time() - started
    return 5 * seconds


def theirs(path: Path, intelex: bool) -> tuple[float, float, dict[str, float]]:
    """Search with scikit-learn's or scikit-learn-intelex's SVC."""
    X, y = rows_of(path)
    search = GridSearchCV(
        machine_of(intelex),
        {"C": PENALTIES, "gamma": WIDTHS},
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        refit=False,
    )
    started = time.process_time()
    search.fit(X, y)
    return time.process_time() - started, float(search.best_score_), search.best_params_


def largest_difference(warm: dict[str, object], cold: dict[str, object]) -> float:
    """Return the largest difference of two searches' mean scores at the same point."""
    means = [
        {
            json.dumps(trial["parameters"], sort_keys=True): trial["mean"]
            for trial in found["trials"]
        }
        for found in (warm, cold)
    ]
    if means[0].keys() != means[1].keys():
        sys.exit(f"the searches tried other points: {means[0].keys() ^ means[1].keys()}")
    return max(abs(mean - means[1][point]) for point, mean in means[0].items())


def regularisation_paths(program: str, name: str, path: Path) -> None:
    """Print how much of the cold search the warm one saves."""
    for path_name, grid in REGULARISATION_PATHS.items():
        warm, cold = ours(program, path, *grid), ours(program, path, *grid, "--cold")
        apart = largest_difference(warm, cold)
        saved = 100 * (1 - warm["steps"] / cold["steps"])
        time_saved = 100 * (1 - warm["cpu_seconds"] / cold["cpu_seconds"])
        print(
            f"| {name} | {path_name} | {cold['steps']} | {warm['steps']} | {saved:.1f} % "
            f"| {cold['cpu_seconds']:.2f} | {warm['cpu_seconds']:.2f} | {time_saved:.1f} % "
            f"| {apart:.1e} |",
            flush=True,
        )


def main() -> None:
    """Print one line per program and data set."""
    if "WIDEMARGIN_DATA" not in os.environ:
        sys.exit("WIDEMARGIN_DATA does not name a folder of data sets: nothing is measured")
    program = os.environ["WIDEMARGIN"]
    peers = os.environ.get("PEERS", "sklearn,sklearnex").split(",")
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or ["satimage"]:
            path = scaled(name, Path(folder), program)
            if "SCENARIOS" in os.environ:
                regularisation_paths(program, name, path)
                continue
            warm = ours(program, path, *GRID)
            found_by = {"warm": warm}
            if "SAMPLE" not in os.environ:
                found_by["cold"] = ours(program, path, *GRID, "--cold")
            for kind, found in found_by.items():
                print(
                    f"{name} {kind}: {found['cpu_seconds']:.2f} s, {found['steps']} steps, "
                    f"{found['best']}, {found['score']:.4f}",
                    flush=True,
                )
            for peer in (peer for peer in peers if peer):
                if "SAMPLE" in os.environ:
                    seconds = sampled(path, peer == "sklearnex")
                    again = ours(program, path, *GRID)
                    taken = [float(str(found["cpu_seconds"])) for found in (warm, again)]
                    print(
                        f"{name} {peer}: {seconds:.0f} s by one fold, ours after it {taken[1]:.2f} s, "
                        f"{2 * seconds / sum(taken):.1f}x",
                        flush=True,
                    )
                    continue
                seconds, score, best = theirs(path, peer == "sklearnex")
                ratio = seconds / float(str(warm["cpu_seconds"]))
                print(
                    f"{name} {peer}: {seconds:.1f} s, {ratio:.1f}x, {best}, {score:.4f}", flush=True
                )


if __name__ == "__main__":
    main()
