"""Measures the all-in-one machines: Shark's problems, the published optima, growth with the classes.

    WIDEMARGIN_DATA=… python3 bench/multiclass.py [digits letter3000 letter usps classes text online mnist]

Uses target/release/widemargin, or the program in WIDEMARGIN; prints rows of bench/multiclass.md.
"""

import gzip
import json
import lzma
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("WIDEMARGIN", ROOT / "target" / "release" / "widemargin")
DATA = os.environ.get("WIDEMARGIN_DATA")
#: CPU seconds of Shark (RBF, no bias, eps 1e-3), measured beside the other peers.
SHARK = {
    "digits": {
        "ova": 0.144,
        "ww": 0.448,
        "cs": 0.274,
        "llw": 12.285,
        "atm": 10.694,
        "ats": 14.123,
        "adm": 8.862,
        "mmr": 0.037,
    },
    "letter3000": {"ova": 3.028, "ww": 64.408, "cs": 27.387, "mmr": 0.333},
}


def lines(name, part):
    path = pathlib.Path(DATA) / name / f"{name}.{part}.libsvm.xz"
    return lzma.open(path, "rt").read().splitlines()


def scaled(rows, factor):
    def one(row):
        label, *features = row.split()
        pairs = (feature.split(":") for feature in features)
        return " ".join([label, *(f"{i}:{float(v) * factor!r}" for i, v in pairs)])

    return [one(row) for row in rows]


def train(folder, rows, options, test=None, repeat=1):
    """Return the summary of the fastest of some runs."""
    (folder / "train").write_text("\n".join(rows) + "\n")
    command = [
        PROGRAM,
        "train",
        "train",
        "--format",
        "libsvm",
        "--json",
        "-o",
        "model.wm",
        *options,
    ]
    if test is not None:
        (folder / "test").write_text("\n".join(test) + "\n")
        command += ["--test", "test"]
    best = None
    for _ in range(repeat):
        run = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True)
        if run.returncode not in (0, 3):
            sys.exit(run.stderr)
        found = json.loads(run.stdout)
        if best is None or found["fit_cpu_seconds"] < best["fit_cpu_seconds"]:
            best = found
    return best


def row(name, machine, found, peer=None):
    test = found.get("test") or {}
    errors = "" if not test else str(round(test["rows"] * (1 - test["accuracy"])))
    ratio = f"{peer:.3f} s, {peer / found['fit_cpu_seconds']:.0f}×" if peer else ""
    print(
        f"| {name} | {machine} | {found['fit_cpu_seconds']:.3f} | {found['fit_seconds']:.3f} "
        f"| {found['dual']:.2f} | {found['gap']:.3g} | {found['violation']:.1e} "
        f"| {found['iterations']} | {found['kernel_rows']} "
        f"| {found['support_vectors']} | {errors} | {ratio} |",
        flush=True,
    )


def options(machine, c, gamma=None, *more):
    kernel = ["--kernel", "linear"] if gamma is None else ["--gamma", repr(gamma)]
    threads = [] if "--threads" in more else ["--threads", "1"]
    return ["--machine", machine, "--c", str(c), *kernel, *threads, *more]


def digits(folder):
    """Train on the very rows that Shark was measured on; needs scikit-learn for the split."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    def text(table, labels):
        return [
            " ".join([str(y), *(f"{j + 1}:{v / 16!r}" for j, v in enumerate(x) if v)])
            for x, y in zip(table.tolist(), labels)
        ]

    x, y = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(x, y, test_size=0.25, random_state=0)
    rows, test = text(x, y), text(x_test, y_test)
    for machine in ("ww", "cs", "llw", "adm", "atm", "ats", "mmr", "ova", "reinforced"):
        found = train(folder, rows, options(machine, 10, 0.25), test, repeat=15)
        row("digits 1347", machine, found, SHARK["digits"].get(machine))


def letter3000(folder):
    rows = scaled(lines("letter", "train"), 1 / 15)
    for machine in ("ww", "cs", "mmr", "ova"):
        found = train(folder, rows[:3000], options(machine, 16, 4.0), rows[3000:6000], repeat=2)
        row("letter 3000", machine, found, SHARK["letter3000"].get(machine))


def letter_rows():
    rows = lines("letter", "train") + lines("letter", "test")
    return rows[:16000], rows[16000:]


def letter(folder):
    rows, test = letter_rows()
    row("letter 16000", "cs", train(folder, rows, options("cs", 10, 2 / 39), test))
    row("letter 16000", "llw", train(folder, rows, options("llw", 1000, 2 / 39), test))


def smoothed(rows):
    """Return USPS as LIBSVM's copy has it: a Gaussian of 0.75 pixels, −1 outside."""
    weights = [math.exp(-0.5 * (t / 0.75) ** 2) for t in range(-3, 4)]
    weights = [w / sum(weights) for w in weights]

    def along(image, step):
        out = [0.0] * 256
        for at in range(256):
            place = at // step % 16
            for t in range(-3, 4):
                inside = 0 <= place + t < 16
                out[at] += weights[t + 3] * (image[at + t * step] if inside else -1.0)
        return out

    def one(row):
        label, *features = row.split()
        image = [0.0] * 256
        for feature in features:
            index, value = feature.split(":")
            image[int(index) - 1] = float(value)
        values = along(along(image, 1), 16)
        return " ".join([label, *(f"{i + 1}:{v:.6g}" for i, v in enumerate(values))])

    return [one(row) for row in rows]


def usps(folder):
    rows, test = smoothed(lines("usps", "train")), smoothed(lines("usps", "test"))
    for machine, c in (("c-svc", 10), ("cs", 10), ("llw", 100)):
        row("usps", machine, train(folder, rows, options(machine, c, 0.0331574), test, repeat=3))


def classes(folder):
    rows, _ = letter_rows()
    for count in (2, 6, 13, 26):
        some = [r for r in rows if int(r.split()[0]) <= count]
        part = some[:: max(1, len(some) // 1200)][:1200]
        for machine in ("ww", "llw"):
            row(
                f"letter, {count} classes, {len(part)} rows",
                machine,
                train(folder, part, options(machine, 10, 2 / 39), repeat=2),
            )


def text(folder):
    for name in ("reuters-r8-counts", "news20-bydate-counts"):
        rows, test = lines(name, "train"), lines(name, "test")
        for machine in ("ww", "cs", "llw"):
            row(name, machine, train(folder, rows, options(machine, 0.01), test))


def online(folder):
    letters, usps_rows = (
        letter_rows(),
        [smoothed(lines("usps", part)) for part in ("train", "test")],
    )
    problems = (
        ("letter 16000", letters, "cs", 10, 2 / 39),
        ("letter 16000", letters, "llw", 1000, 2 / 39),
        ("usps", usps_rows, "cs", 10, 0.0331574),
        ("usps", usps_rows, "llw", 100, 0.0331574),
    )
    for name, (rows, test), machine, c, gamma in problems:
        for strategy in ("blocks", "random-all", "random-pattern", "whole-pattern"):
            more = ["--online", "--strategy", strategy]
            found = train(folder, rows, options(machine, c, gamma, *more), test)
            row(name, f"{machine} x1 {strategy}", found)
    rows = scaled(lines("optdigits", "test"), 1 / 16)
    for budget in (50, 100, 200, 400, 1000):
        more = ["--online", "--budget", str(budget)]
        row(
            "digits 1347",
            f"ww x1 budget {budget}",
            train(folder, rows[:1347], options("ww", 10, 0.25, *more), rows[1347:]),
        )


def mnist(folder):
    """Train on MNIST in [0, 1] with two threads, each machine in batch and in one online pass."""

    def images(part):
        with gzip.open(pathlib.Path(DATA) / "mnist" / f"{part}-images-idx3-ubyte.gz") as file:
            pixels = file.read()[16:]
        with gzip.open(pathlib.Path(DATA) / "mnist" / f"{part}-labels-idx1-ubyte.gz") as file:
            labels = file.read()[8:]
        values = [f"{v / 255:.6g}" for v in range(256)]
        for i, label in enumerate(labels):
            image = pixels[784 * i : 784 * (i + 1)]
            yield " ".join(
                [str(label), *(f"{j + 1}:{values[v]}" for j, v in enumerate(image) if v)]
            )

    rows, test = list(images("train")), list(images("t10k"))
    for machine, c, gamma, cache in (("llw", 1000, 0.0189274, 6000), ("cs", 100, 0.0378548, 4000)):
        batch = options(machine, c, gamma, "--threads", "2", "--cache-mb", cache)
        row("mnist", machine, train(folder, rows, batch, test))
        row("mnist", f"{machine} x1", train(folder, rows, [*batch, "--online"], test))
        if machine == "llw":
            row("mnist 10000", machine, train(folder, rows[:10_000], batch, test))


def main():
    if DATA is None:
        sys.exit("set WIDEMARGIN_DATA to the folder of the data sets")
    columns = (
        *("data", "machine", "CPU s", "wall s", "dual", "gap", "violation", "visits"),
        *("kernel rows", "SVs", "errors", "Shark CPU"),
    )
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or ["digits", "letter3000", "letter", "usps", "classes"]:
            globals()[name](pathlib.Path(folder))


if __name__ == "__main__":
    main()
