"""The tables of Lu (2005), chapters 4 and 5, beside ours, as Markdown on standard output.

The thesis does not state its synthetic data. Its toy problem of 2000 points is replaced by two
Gaussian classes of 1400 and 600 points 4.5 apart, with the thesis's division among five sites
(table 4.1), an RBF kernel of unit width and C = 10; ranges are over seeds. Random working sets are
tried on 20 000 points of two Gaussian classes 9 apart. Needs the standard library only.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = os.environ.get("WIDEMARGIN", "target/release/widemargin")
SITES = [(338, 106), (116, 168), (485, 58), (197, 144), (264, 124)]  # table 4.1
NETWORKS = [  # name, options, iterations, vectors, largest site of tables 4.2 and 4.3
    ("round-robin", "--topology ring", 11, 734, 697),
    ("full", "--topology full", 6, 1017, 778),
    ("random, 13 links", "--topology random:13", 6, 1156, 742),
    ("sequential round-robin", "--topology ring --schedule sequential", 15, 495, 648),
]
EVEN = [("full, 10 sites", 10, 4, 4680, 690), ("full, 20 sites", 20, 4, 15504, 888)]
SEEDS = 3


def gaussian(generator, count, shift, label):
    """Labelled points of a Gaussian class around (shift, shift)."""
    return [
        (label, generator.gauss(0, 1) + shift, generator.gauss(0, 1) + shift) for _ in range(count)
    ]


def write(path, rows):
    """Write LIBSVM text."""
    path.write_text("".join(f"{label} 1:{x!r} 2:{y!r}\n" for label, x, y in rows))


def train(folder, files, options):
    """Train and return what the program printed as JSON."""
    command = [PROGRAM, "train", *map(str, files), *options.split(), "--json", "--quiet"]
    command += ["-o", str(folder / "model.wm")]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{' '.join(command)}\n{run.stderr}")
    return json.loads(run.stdout)


def between(values):
    """Return the range of the values as text."""
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low}–{high}"


def exchange(folder):
    """Tables 4.2 and 4.3: sites that exchange support vectors."""
    print(
        "| network | iterations | ours | vectors sent | ours | largest site | ours "
        "| gap to one place |"
    )
    print("|---|---|---|---|---|---|---|---|")
    machine = "--c 10 --gamma 0.5 --precision f64 --tol 1e-6"
    found = {name: [] for name, *_ in NETWORKS + EVEN}
    for seed in range(SEEDS):
        generator = random.Random(seed)
        shift = 4.5 / math.sqrt(2)
        first, second = gaussian(generator, 1400, 0, 1), gaussian(generator, 600, shift, 2)
        whole = folder / "whole.libsvm"
        write(whole, first + second)
        optimum = train(folder, [whole], machine)["dual"]
        files = []
        for site, (a, b) in enumerate(SITES):
            files.append(folder / f"site{site}.libsvm")
            write(files[-1], first[:a] + second[:b])
            first, second = first[a:], second[b:]
        jobs = [(n, files, f"--sites 5 {options}") for n, options, *_ in NETWORKS]
        jobs += [(n, [whole], f"--sites {sites}") for n, sites, *_ in EVEN]
        for name, data, options in jobs:
            result = train(folder, data, f"{machine} {options}")
            gap = abs(result["dual"] - optimum) / optimum
            found[name].append((result["distribution"], gap))
    for name, _, iterations, vectors, largest in NETWORKS + EVEN:
        told = [told for told, _ in found[name]]
        cells = []
        for published, key in [
            (iterations, "rounds"),
            (vectors, "vectors"),
            (largest, "largest_site"),
        ]:
            cells += [str(published), between([one[key] for one in told])]
        print(f"| {name} | {' | '.join(cells)} | {max(gap for _, gap in found[name]):.0e} |")


def randomized(folder):
    """Chapter 5: random working sets."""
    print("\n| working sets a round | rounds, mean of seeds | bound | rows drawn | of 20 000 |")
    print("|---|---|---|---|---|")
    generator = random.Random(0)
    data = folder / "wide.libsvm"
    shift = 9 / math.sqrt(2)
    write(data, gaussian(generator, 10_000, 0, 1) + gaussian(generator, 10_000, shift, 2))
    for sets in [1, 2, 4]:
        options = (
            "--kernel linear --c 0.2 --precision f64 --method prsvm --working-set 294 "
            f"--sites {sets}"
        )
        runs = [train(folder, [data], f"{options} --seed {seed}") for seed in range(5)]
        functions = [run["distribution"]["functions"][0] for run in runs]
        assert all(function["verified"] for function in functions)
        rounds = sum(len(function["violators"]) for function in functions) / len(functions)
        rows = sum(function["vectors"] for function in functions) / len(functions)
        bound = 6 * 7 / sets * math.log(20_000 + 6 * 294 * (sets - 1) * 7)
        print(f"| {sets} | {rounds:.1f} | {bound:.0f} | {rows:.0f} | {rows / 20_000:.2f} |")


with tempfile.TemporaryDirectory() as name:
    exchange(Path(name))
    randomized(Path(name))
