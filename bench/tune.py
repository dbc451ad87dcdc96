"""A grid of 10 x 10 penalties and widths with 5 folds: ours beside GridSearchCV.

Ours is `widemargin tune` (the whole program: reading, searching, printing), the peers are
`GridSearchCV` over scikit-learn's `SVC` and scikit-learn-intelex's, in process, without reading. All
run on one thread, processor seconds are compared, and the folds are each program's own stratified
ones. The warm search is also compared with the cold one of our own.

    WIDEMARGIN=path/to/widemargin WIDEMARGIN_DATA=folder python bench/tune.py satimage letter
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
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


def ours(program: str, path: Path, *more: str) -> dict[str, object]:
    """Search with the program."""
    penalties = ",".join(map(str, PENALTIES))
    widths = ",".join(map(str, WIDTHS))
    command = [program, "tune", path, "--grid", f"gamma={widths}", "--grid", f"c={penalties}"]
    done = subprocess.run(
        [*command, "--threads", "1", "--cache-mb", "2048", "--json", *more],
        capture_output=True,
        check=True,
    )
    found = json.loads(done.stdout)
    found["steps"] = sum(s["iterations"] for t in found["trials"] for s in t["splits"])
    return found


def theirs(path: Path, intelex: bool) -> tuple[float, float, dict[str, float]]:
    """Search with scikit-learn's or scikit-learn-intelex's SVC."""
    machine = SVC()
    if intelex:
        from sklearnex.svm import SVC as PatchedSVC

        machine = PatchedSVC()
    X, y = load_svmlight_file(str(path))
    X = np.ascontiguousarray(X.toarray())
    search = GridSearchCV(
        machine,
        {"C": PENALTIES, "gamma": WIDTHS},
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        refit=False,
    )
    started = time.process_time()
    search.fit(X, y)
    return time.process_time() - started, float(search.best_score_), search.best_params_


def main() -> None:
    """Print one line per program and data set."""
    if "WIDEMARGIN_DATA" not in os.environ:
        sys.exit("WIDEMARGIN_DATA does not name a folder of data sets: nothing is measured")
    program = os.environ["WIDEMARGIN"]
    peers = os.environ.get("PEERS", "sklearn,sklearnex").split(",")
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or ["satimage"]:
            path = scaled(name, Path(folder), program)
            warm = ours(program, path)
            cold = ours(program, path, "--cold")
            for kind, found in (("warm", warm), ("cold", cold)):
                print(
                    f"{name} {kind}: {found['cpu_seconds']:.2f} s, {found['steps']} steps, "
                    f"{found['best']}, {found['score']:.4f}",
                    flush=True,
                )
            for peer in (peer for peer in peers if peer):
                seconds, score, best = theirs(path, peer == "sklearnex")
                ratio = seconds / float(str(warm["cpu_seconds"]))
                print(
                    f"{name} {peer}: {seconds:.1f} s, {ratio:.1f}x, {best}, {score:.4f}", flush=True
                )


if __name__ == "__main__":
    main()
