"""The tables of Lu (2005), chapters 4 and 5, beside ours, as Markdown on standard output.

The thesis does not state its synthetic data. Its toy problem of 2000 points is replaced by two
Gaussian classes of 1400 and 600 points 4.5 apart, with the thesis's division among five sites
(table 4.1), an RBF kernel of unit width and C = 10; ranges are over seeds. Random working sets are
tried on 20 000 points of two Gaussian classes 9 apart. Needs the standard library only.
"""

import gzip
import itertools
import json
import lzma
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


def demonstrations(folder):
    """Figures 4.1 and 5.1: a ring of 5 sites (X6) and random working sets of 100 rows (X11)."""
    generator = random.Random(0)
    rows = []
    for label, shift in [(1, -1.5), (2, 1.5)]:
        points = gaussian(generator, 100, 0, label)
        rows += [(name, x + shift, y) for name, x, y in points]
    data = folder / "ring.libsvm"
    write(data, rows)
    told = train(folder, [data], "--kernel linear --c 1 --precision f64 --sites 5 --topology ring")
    told = told["distribution"]
    print(
        "\nFigure 4.1, 200 points of two Gaussian classes 3 apart, ring of 5 sites, linear kernel, "
        "C = 1: "
        f"{told['rounds']} rounds, the verification's included (thesis: 4), {told['vectors']} "
        f"vectors sent; rows held by the sites after every round: "
        + "; ".join(" ".join(map(str, held)) for held in told["held"])
        + "."
    )
    print("\nFigure 5.1, 500 + 500 points, working sets of 100 rows, C = 0.2 (thesis: 13 rounds; "
          "its distance of the classes is not known), five seeds:\n")  # fmt: skip
    print("| distance | support vectors | working sets | rounds | violators, first seed |")
    print("|---|---|---|---|---|")
    for distance in [6, 8]:
        shift = distance / math.sqrt(2)
        generator = random.Random(distance)
        write(data, gaussian(generator, 500, 0, 1) + gaussian(generator, 500, shift, 2))
        for sets in [1, 2, 4]:
            options = (
                "--kernel linear --c 0.2 --precision f64 --site-method prsvm --working-set 100 "
                f"--sites {sets}"
            )
            runs = [train(folder, [data], f"{options} --seed {seed}") for seed in range(5)]
            functions = [run["distribution"]["functions"][0] for run in runs]
            rounds = [len(function["violators"]) for function in functions]
            series = " ".join(map(str, functions[0]["violators"]))
            vectors = runs[0]["support_vectors"]
            print(f"| {distance} | {vectors} | {sets} | {between(rounds)} | {series} |")


MNIST = [  # deviation of the sizes, iterations, vectors, largest site of table 4.4
    (0, 5, 8015, 2686),
    (196.3, 5, 8330, 3111),
    (620.1, 6, 7875, 3804),
    (1204.3, 5, 7588, 4403),
    (1763.4, 5, 7175, 5302),
]


def sizes(total, sites, deviation):
    """Sizes of sites in geometric progression with this standard deviation."""
    low, high = 0.0, 5.0
    for _ in range(100):
        rate = (low + high) / 2
        shares = [math.exp(rate * site) for site in range(sites)]
        counts = [total * share / sum(shares) for share in shares]
        mean = total / sites
        found = math.sqrt(sum((count - mean) ** 2 for count in counts) / sites)
        low, high = (rate, high) if found < deviation else (low, rate)
    ends = [round(sum(counts[: site + 1])) for site in range(sites)]
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def mnist(folder, data):
    """Table 4.4: digit 0 against the rest, 15 000 images, 8 sites, fully connected."""
    images = gzip.decompress((data / "mnist/train-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((data / "mnist/train-labels-idx1-ubyte.gz").read_bytes())[8:]
    order = random.Random(0).sample(range(len(labels)), 15_000)
    lines = []
    for row in order:
        pixels = images[784 * row : 784 * (row + 1)]
        values = " ".join(f"{i + 1}:{v / 255:.6g}" for i, v in enumerate(pixels) if v)
        lines.append(f"{int(labels[row] == 0)} {values}\n")
    whole = folder / "mnist.libsvm"
    whole.write_text("".join(lines))
    machine = "--kernel linear --c 10"
    best = train(folder, [whole], machine)
    print("\n| deviation of sizes | iterations | ours | vectors sent | ours | largest site | ours "
          "| bytes a vector | gap to one place |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    row_bytes = sum(len(line.split()) - 1 for line in lines) / len(lines) * 12
    for deviation, iterations, vectors, largest in MNIST:
        files, start = [], 0
        for site, count in enumerate(sizes(len(lines), 8, deviation)):
            files.append(folder / f"mnist{site}.libsvm")
            files[-1].write_text("".join(lines[start : start + count]))
            start += count
        result = train(folder, files, f"{machine} --sites 8")
        told, gap = result["distribution"], abs(result["dual"] - best["dual"]) / best["dual"]
        share = told["bytes"] / told["vectors"]
        print(
            f"| {deviation} | {iterations} | {told['rounds']} | {vectors} | {told['vectors']} "
            f"| {largest} | {told['largest_site']} | {share:.0f} | {gap:.0e} |",
            flush=True,
        )
    print(f"\nA row has {row_bytes:.0f} bytes on average as sparse doubles.")
    scalability(folder, whole, machine, best)


def scalability(folder, whole, machine, best):
    """Figures 4.6 to 4.8: what sites cost, in pair steps of the solver, and what they gather."""
    print("\nFigures 4.6 and 4.7. Work is counted in pair steps of the solver, of the slowest "
          "site in every round (the thesis plots seconds, without numbers); one site takes "
          f"{best['iterations']}.\n")  # fmt: skip
    print("| sites | network | rounds | steps of the slowest sites | steps of all | largest site |")
    print("|---|---|---|---|---|---|")
    series = {}
    for sites in [2, 4, 8, 16]:
        for name, options in [
            ("full, parallel", "--topology full"),
            ("ring, sequential", "--topology ring --schedule sequential"),
        ]:
            told = train(folder, [whole], f"{machine} --sites {sites} {options}")["distribution"]
            steps = [[0] * sites, *told["steps"]]
            work = [
                [now - last for now, last in zip(*pair, strict=True)]
                for pair in itertools.pairwise(steps)
            ]
            print(
                f"| {sites} | {name} | {told['rounds']} | {sum(map(max, work))} "
                f"| {sum(map(sum, work))} | {told['largest_site']} |",
                flush=True,
            )
            if sites == 8:
                series[name] = [
                    f"{held[0]}/{support[0]}/{steps[0]}"
                    for held, support, steps in zip(
                        told["held"], told["support"], work, strict=True
                    )
                ]
    print("\nFigure 4.8, site 1 of 8: rows / support vectors / pair steps of every round.\n")
    for name, rounds in series.items():
        print(f"- {name}: {', '.join(rounds)}")


def covtype(folder, data):
    """Table 5.1 on the 15 120 rows of covtype that are there: class 4 against the rest."""
    lines = (
        lzma.decompress((data / "covtype-15120/covtype-15120.libsvm.xz").read_bytes())
        .decode()
        .splitlines()
    )
    path = folder / "covtype.libsvm"
    path.write_text("".join(
        f"{int(line.split()[0] == '4')} {line.split(maxsplit=1)[1]}\n" for line in lines
    ))  # fmt: skip
    machine = "--kernel linear --c 0.2 --scale minmax:0,1"
    alone = train(folder, [path], machine)
    series = []
    print("\n| working sets a round | thesis, 287 831 rows | ours | rows drawn | of 15 120 | gap |")
    print("|---|---|---|---|---|---|")
    for sets, published in [(1, 27), (2, 10), (4, 7)]:
        options = f"{machine} --method prsvm --working-set 3000 --sites {sets}"
        result = train(folder, [path], options)
        function = result["distribution"]["functions"][0]
        gap = abs(result["dual"] - alone["dual"]) / alone["dual"]
        rows = function["vectors"]
        print(f"| {sets} | {published} | {len(function['violators'])} | {rows} "
              f"| {rows / 15_120:.2f} | {gap:.0e} |", flush=True)  # fmt: skip
        found = zip(function["violators"], function["support"], strict=True)
        series.append(f"{sets}: " + " ".join(f"{v}/{s}" for v, s in found))
    print("\nFigure 5.2, violators / support vectors of the best working set of every round:\n")
    print("\n".join(f"- {line}" for line in series))


with tempfile.TemporaryDirectory() as name:
    exchange(Path(name))
    randomized(Path(name))
    demonstrations(Path(name))
    if folder := os.environ.get("WIDEMARGIN_DATA"):
        mnist(Path(name), Path(folder))
        covtype(Path(name), Path(folder))
    else:
        print("\nSet WIDEMARGIN_DATA for the tables on MNIST and covtype.")
