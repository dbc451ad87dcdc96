"""Searches for penalty and width on sets that the search was not tuned on, beside GridSearchCV.

    WIDEMARGIN_DATA=folder python searches.py [--sets pima,vehicle] [--rows 1000]

Grids of 5 x 5 and 10 x 10 values with 3 and 5 folds, columns standardised, one thread, processor seconds.
Ours is `widemargin tune` (the search of `SVCSearchCV`) with reading and printing; scikit-learn's is
`GridSearchCV(SVC())` in process, without reading. Folds are each program's own stratified ones. A full run
writes bench/searches.md. WIDEMARGIN names the program, as in `runners.py`.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np
from compare import processor, seconds, verdict
from hard import SETS, load
from runners import HERE, OURS
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

NAMES = (
    "pima",
    "german.numer",
    "australian",
    "banknote",
    "vehicle",
    "wdbc",
    "breast-cancer-wisconsin",
    "ijcnn1",
)
SIZES, FOLDS = (5, 10), (3, 5)
MEDIAN, LEAST = 20.0, 10.0
PAGE = HERE / "searches.md"


@dataclass(frozen=True)
class Found:
    """What a search took and the best mean score, with its standard error over the folds."""

    cpu: float
    score: float
    error: float


def grid(size: int):
    """Penalties from 2^-2 to 2^10 and widths from 2^-8 to 2^1, evenly spaced in the exponent."""
    return np.logspace(-2, 10, size, base=2), np.logspace(-8, 1, size, base=2)


def ours(path: Path, size: int, folds: int) -> Found:
    penalties, widths = (",".join(map(repr, map(float, values))) for values in grid(size))
    command = [OURS, "tune", path, "--threads", "1", "--cache-mb", "1000", "--json"]
    command += ["--folds", str(folds), "--grid", f"gamma={widths}", "--grid", f"c={penalties}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, check=True)
    result = json.loads(done.stdout)
    best = max(result["trials"], key=lambda trial: trial["mean"])
    scores = [split["score"] for split in best["splits"]]
    return Found(result["cpu_seconds"], best["mean"], np.std(scores) / folds**0.5)


def peer(rows, labels, size: int, folds: int) -> Found:
    penalties, widths = grid(size)
    cv = StratifiedKFold(folds, shuffle=True, random_state=0)
    search = GridSearchCV(
        SVC(cache_size=1000), {"C": penalties, "gamma": widths}, cv=cv, refit=False
    )
    start = time.process_time()
    search.fit(rows, labels)
    cpu = time.process_time() - start
    error = search.cv_results_["std_test_score"][search.best_index_] / folds**0.5
    return Found(cpu, search.best_score_, error)


def measure(name: str, most: int):
    """{(size, folds): (ours, scikit-learn's)}."""
    target = next(target for target in SETS if target.name == name)
    rows, labels = load(target)
    rows, labels = rows[:most], labels[:most]
    cells = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.libsvm"
        dump_svmlight_file(rows, labels, str(path), zero_based=False)
        for size in SIZES:
            for folds in FOLDS:
                mine = [ours(path, size, folds)]
                other = peer(rows.astype(np.float64), labels, size, folds)
                mine.append(ours(path, size, folds))
                cells[size, folds] = (min(mine, key=lambda found: found.cpu), other)
                ratio = other.cpu / cells[size, folds][0].cpu
                print(f"{name} {size} x {size}, {folds} folds: {ratio:.1f}x", flush=True)
    return len(rows), cells


def same_score(mine: Found, other: Found) -> bool:
    return abs(mine.score - other.score) <= (mine.error**2 + other.error**2) ** 0.5


def page(results):
    ratios = [
        other.cpu / mine.cpu for _, cells in results.values() for mine, other in cells.values()
    ]
    pairs = [pair for _, cells in results.values() for pair in cells.values()]
    same = sum(same_score(*pair) for pair in pairs)
    yield "# Searches on sets they were not tuned on"
    yield ""
    yield (
        f"`bench/searches.py`, {date.today()}, {processor()}, scikit-learn {version('scikit-learn')}, one thread, "
        "processor time. Every cell: ratio, ours / scikit-learn's, best scores."
    )
    yield ""
    yield from ("| | measured | wanted | |", "|--|--|--|--|")
    median = statistics.median(ratios)
    yield f"| median ratio | {median:.3g} | ≥ {MEDIAN:g} | {verdict(median >= MEDIAN)} |"
    yield f"| smallest ratio | {min(ratios):.3g} | ≥ {LEAST:g} | {verdict(min(ratios) >= LEAST)} |"
    yield (
        f"| best scores within the folds' standard error | {same} of {len(pairs)} | all | "
        f"{verdict(same == len(pairs))} |"
    )
    yield ""
    names = [f"{size} × {size}, {folds} folds" for size in SIZES for folds in FOLDS]
    yield "| set | " + " | ".join(names) + " |"
    yield "|--" * (len(names) + 1) + "|"
    for name, (rows, cells) in results.items():
        parts = [
            f"**{other.cpu / mine.cpu:.1f}×** {seconds(mine.cpu)} / {seconds(other.cpu)}, "
            f"{mine.score:.4f} / {other.score:.4f}"
            for mine, other in cells.values()
        ]
        yield f"| {name}, {rows} rows | " + " | ".join(parts) + " |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sets", help="names, separated by commas; no page is written")
    parser.add_argument("--rows", type=int, default=1000, help="rows taken at the most")
    options = parser.parse_args()
    names = options.sets.split(",") if options.sets else NAMES
    results = {name: measure(name, options.rows) for name in names}
    text = "\n".join(page(results)) + "\n"
    print(text)
    if not options.sets:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
