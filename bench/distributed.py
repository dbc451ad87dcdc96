"""Rows at several sites against one place: the same optimum, and what it costs. Markdown on standard output.

Every real data set is trained with every topology and schedule by 2, 8 and 32 sites, rows divided at random or
sorted by class (so that most sites have one class), and the objective is compared with that of one place. Data
sets that are not in data/ come from the folder WIDEMARGIN_DATA; without it they are left out.
"""

import itertools
import json
import lzma
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = os.environ.get("WIDEMARGIN", "target/release/widemargin")
ROOT = Path(__file__).parent.parent / "data"
MORE = os.environ.get("WIDEMARGIN_DATA")
SETS = ["iris", "wine", "wdbc", "sonar"]
MORE_SETS = [
    "australian", "heart", "german.numer", "ionosphere", "pima", "glass", "vehicle",
    "breast-cancer-wisconsin",
]  # fmt: skip
MACHINE = "--c 5 --gamma 0.1 --tol 1e-7 --precision f64".split()
SITES = [2, 8, 32]
SCHEDULES = ["parallel", "sequential", "async"]


def topologies(sites):
    """The graphs that are tried."""
    return ["full", "ring", "tree", f"random:{min(sites + 3, sites * (sites - 1))}"]


def train(files, *options):
    """Train and return what the program printed as JSON."""
    command = [PROGRAM, "train", *map(str, files), *options, "--json", "--quiet"]
    run = subprocess.run([*command, "-o", "/dev/null"], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{' '.join(command)}\n{run.stderr}")
    return json.loads(run.stdout)


def prepared(name, folder):
    """Scaled rows of a data set as LIBSVM text, and the same sorted by class."""
    path = ROOT / f"{name}.csv"
    if not path.exists():
        if MORE is None:
            return None
        packed = Path(MORE) / name / f"{name}.libsvm.xz"
        if not packed.exists():
            return None
        path = folder / f"{name}.txt"
        path.write_bytes(lzma.decompress(packed.read_bytes()))
    scaled = folder / f"{name}.libsvm"
    command = [PROGRAM, "scale", str(path), "--method", "standard", "-o", str(scaled)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{' '.join(command)}\n{run.stderr}")
    lines = scaled.read_text().splitlines(keepends=True)
    return scaled, sorted(lines, key=lambda line: line.split(maxsplit=1)[0])


def cut(lines, sites, folder):
    """Files of the sites."""
    files = []
    for site in range(sites):
        files.append(folder / f"site-{site}.libsvm")
        files[-1].write_text(
            "".join(lines[len(lines) * site // sites : len(lines) * (site + 1) // sites])
        )
    return files


def exactness(folder):
    """Print the largest difference from one place for every set."""
    print("| data set | rows | trainings | largest difference | verified | vectors sent / rows |")
    print("|---|---|---|---|---|---|")
    failed = 0
    for name in SETS + MORE_SETS:
        found = prepared(name, folder)
        if found is None:
            print(f"| {name} | – | not there | | | |")
            continue
        scaled, by_class = found
        rows = len(by_class)
        best = train([scaled], *MACHINE)["dual"]
        worst, runs, verified, sent = 0.0, 0, 0, []
        for sites in SITES:
            for skewed, schedule in ((k, s) for k in (False, True) for s in SCHEDULES):
                files = cut(by_class, sites, folder) if skewed else [scaled]
                for topology in topologies(sites):
                    options = f"--sites {sites} --topology {topology} --schedule {schedule}".split()
                    result = train(files, *MACHINE, *options)
                    dual = result["dual"]
                    worst = max(worst, abs(dual - best) / max(1.0, abs(best)))
                    verified += result["distribution"]["verified"]
                    sent.append(result["distribution"]["vectors"] / rows)
                    runs += 1
        failed += worst > 1e-6 or verified < runs
        spread = f"{min(sent):.2f}–{max(sent):.1f}"
        print(f"| {name} | {rows} | {runs} | {worst:.1e} | {verified} | {spread} |", flush=True)
    print(f"\n{'PASS' if not failed else 'FAIL'}: objectives to 1e-6, every training verified\n")


def costs(folder):
    """Print rounds, traffic, the largest site and the work of the slowest sites for 1 to 16 sites."""
    images, labels = (
        str(ROOT / f"mnist-500-{kind}.gz") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
    )
    options = ["--labels", labels, "--c", "10", "--gamma", "0.02", "--scale", "minmax"]
    print("500 MNIST digits, ten classes, RBF (784 single-precision features: 3136 bytes a row)\n")
    print("| sites | network | rounds | vectors | bytes / (vectors × row) | to verify: vectors, bytes / row "
          "| largest site | steps of the slowest sites / one site |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    alone = None
    for sites in [1, 2, 4, 8, 16]:
        for network in ["full", "ring"]:
            told = train([images], *options, "--sites", str(sites), "--topology", network)
            told = told["distribution"]
            steps = [[0] * sites, *told["steps"]]
            slowest = sum(
                max(now - last for now, last in zip(*pair, strict=True))
                for pair in itertools.pairwise(steps)
            )
            alone = alone or slowest
            share = f"{told['bytes'] / (3136 * told['vectors']):.2f}" if told["vectors"] else "–"
            verified = told["verification_vectors"]
            extra = f"{verified}, {told['verification_bytes'] / 3136:.0f}"
            print(
                f"| {sites} | {network} | {told['rounds']} | {told['vectors']} | {share} | {extra} "
                f"| {told['largest_site']} | {slowest / alone:.2f} |"
            )


with tempfile.TemporaryDirectory() as temporary:
    print(
        "# Rows at several sites\n\n`bench/distributed.py`; the machine is C-SVC with "
        + " ".join(MACHINE)
        + "\n"
    )
    exactness(Path(temporary))
    costs(Path(temporary))
