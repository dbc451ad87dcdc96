#!/usr/bin/env python3
"""Times reading 100 MB of LIBSVM text: ours, scikit-learn's and LIBSVM's readers, one thread.

Needs bench/setup.sh to have run. Both files are made from a seed; runs are interleaved and the best of
each is kept. LIBSVM's C reader is timed through `svm-train -c -1`, which reads the whole file and then
refuses the parameter. Programs are timed as whole processes, Python readers without their imports.

    python bench/parse.py [--megabytes 100] [--repeats 5]     writes bench/parsing.md
"""

import argparse
import json
import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
READER = HERE.parent / "target" / "release" / "examples" / "read_speed"


def make_sparse(path, size):
    """20 to 80 of 50 000 features per row, values of six digits."""
    generator = random.Random(1)
    written = 0
    with open(path, "w") as out:
        while written < size:
            indices = sorted(generator.sample(range(1, 50_001), generator.randint(20, 80)))
            pairs = " ".join(f"{i}:{generator.random():.6g}" for i in indices)
            written += out.write(f"{generator.choice(['+1', '-1'])} {pairs}\n")


def make_dense(path, size):
    """All of 100 features per row, values of 17 digits as Python's repr writes them."""
    generator = random.Random(2)
    written = 0
    with open(path, "w") as out:
        while written < size:
            pairs = " ".join(f"{i}:{generator.gauss(0, 1)!r}" for i in range(1, 101))
            written += out.write(f"{generator.choice(['+1', '-1'])} {pairs}\n")


def timed_process(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def in_python(body):
    """Times `body` in a fresh Python process, imports not counted."""
    code = (
        "import time, json\n"
        + body[0]
        + "\nw, c = time.perf_counter(), time.process_time()\n"
        + body[1]
        + "\nprint(json.dumps([time.perf_counter() - w, time.process_time() - c]))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return tuple(json.loads(output.stdout.splitlines()[-1]))


def readers(path):
    name = repr(str(path))
    rows = [
        ("widemargin, 1 thread", lambda: timed_process([READER, path, "1"])),
        ("widemargin, 2 threads", lambda: timed_process([READER, path, "2"])),
        (
            "scikit-learn `load_svmlight_file`",
            lambda: in_python(
                ("from sklearn.datasets import load_svmlight_file", f"load_svmlight_file({name})")
            ),
        ),
        (
            "LIBSVM `svm_read_problem` (Python)",
            lambda: in_python(
                ("from libsvm.svmutil import svm_read_problem", f"svm_read_problem({name}, True)")
            ),
        ),
    ]
    if shutil.which("svm-train"):
        row = ("LIBSVM `svm-train` (C)", lambda: timed_process(["svm-train", "-c", "-1", path]))
        rows.insert(3, row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    CACHE.mkdir(exist_ok=True)
    command = ["cargo", "build", "--release", "--locked", "-q", "-p", "widemargin"]
    subprocess.run([*command, "--example", "read_speed"], check=True, cwd=HERE.parent)
    import sklearn

    lines = [
        "# Reading LIBSVM text",
        "",
        f"Written by `bench/parse.py`: {arguments.megabytes} MB files made from a seed, file in the page"
        f" cache, best of {arguments.repeats}, interleaved; seconds. scikit-learn {sklearn.__version__},"
        f" {platform.machine()}, {os.cpu_count()} logical processors. Programs are timed as whole"
        " processes, Python readers without their imports; LIBSVM's C reader is `svm-train -c -1`, which"
        " reads the file and then refuses the parameter.",
    ]
    for title, make in [("sparse, short decimals", make_sparse), ("dense, 17 digits", make_dense)]:
        path = CACHE / f"parse-{make.__name__}-{arguments.megabytes}.libsvm"
        if not path.exists():
            make(path, arguments.megabytes * 1_000_000)
        path.read_bytes()
        best = {}
        for _ in range(arguments.repeats):
            for name, run in readers(path):
                times = run()
                old = best.get(name, times)
                best[name] = tuple(min(a, b) for a, b in zip(old, times))
        base = best["widemargin, 1 thread"]
        lines += ["", f"## {title}: {make.__doc__}", ""]
        lines += ["| reader | wall | CPU | MB/s | CPU, times ours |", "|--|--|--|--|--|"]
        for name, (wall, cpu) in best.items():
            rate = path.stat().st_size / 1e6 / wall
            lines.append(f"| {name} | {wall:.3f} | {cpu:.3f} | {rate:.0f} | {cpu / base[1]:.1f} |")
    text = "\n".join(lines) + "\n"
    (HERE / "parsing.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
