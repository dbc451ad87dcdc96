"""Times two builds of the program on the same jobs, in turns, and prints the table of both.

`python before_after.py BEFORE AFTER [--repeats N] [NAME ...]`. Times are the processor seconds that
the programs report for training or prediction alone, the least of all repeats; objectives are primal.
Linear machines stop at the tolerance of both builds (`--gap` is switched off where it exists), since
the bound on their duality gap came later. Reads data sets from WIDEMARGIN_DATA and needs the standard library only.
"""

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
from pathlib import Path

#: Name of a job, its data set and the options of `train`; jobs of prediction end with "predict".
JOBS = {
    "kernel: usps": ("usps", "--c 10 --gamma 0.0078125"),
    "kernel: usps, predict": ("usps", "--c 10 --gamma 0.0078125"),
    "kernel: letter": ("letter", "--c 10 --gamma 0.0625"),
    "kernel: letter, predict": ("letter", "--c 10 --gamma 0.0625"),
    "kernel: satimage": ("satimage", "--c 10 --scale minmax --gamma 1"),
    "kernel: a9a, 8000 rows": ("a9a:8000", "--c 1 --gamma 0.05"),
    "kernel: dna, one-vs-rest": ("dna", "--c 10 --gamma 0.01 --multiclass ovr"),
    "kernel: optdigits, nu-svc": ("optdigits", "-s nu-svc --nu 0.05 --gamma 0.001"),
    "kernel: cpusmall, epsilon-svr": (
        "cpusmall",
        "-s epsilon-svr --c 100 --epsilon 1 --scale minmax --gamma 0.5",
    ),
    "linear: a9a, hinge": ("a9a", "--linear --loss hinge --solver dual --tol 0.01"),
    "linear: a9a, squared hinge": ("a9a", "--linear --loss squared-hinge --solver dual --tol 0.01"),
    "linear: a9a, Newton": ("a9a", "--linear --loss squared-hinge --solver newton --tol 0.001"),
    "linear: a9a, logistic": ("a9a", "-s logistic --solver newton --tol 0.001"),
    "linear: news20, hinge": (
        "news20-bydate-counts",
        "--linear --loss hinge --solver dual --tol 0.1",
    ),
    "linear: reuters, logistic": ("reuters-r8-counts", "-s logistic --solver newton --tol 0.01"),
    "linear: reuters, l1": ("reuters-r8-counts", "--linear --penalty l1 --tol 0.01"),
    "linear: usps, Crammer and Singer": ("usps", "--linear --multiclass crammer-singer --tol 0.1"),
    "multi-class: optdigits, ww": ("optdigits", "-s ww --c 1 --gamma 0.001"),
    "multi-class: optdigits, cs": ("optdigits", "-s cs --c 1 --gamma 0.001"),
    "multi-class: dna, llw": ("dna", "-s llw --c 1 --gamma 0.01"),
    "multi-class: satimage, adm": ("satimage", "-s adm --c 1 --scale minmax --gamma 1"),
    "multi-class: usps, ww online": ("usps", "-s ww --online --c 1 --gamma 0.0078125"),
}


def unpack(folder: Path, source: Path, name: str, part: str) -> Path | None:
    """Writes a part of a data set, its first rows only after a colon, as plain text once."""
    own, _, rows = name.partition(":")
    target = folder / f"{own}{rows}.{part}"
    if not target.exists():
        files = [source / own / f"{own}.{part}.libsvm.xz", source / own / f"{own}.libsvm.xz"]
        found = next((file for file in files if file.exists()), None)
        if found is None:
            return None
        lines = lzma.open(found).read().splitlines(keepends=True)
        target.write_bytes(b"".join(lines[: int(rows) if rows else None]))
    return target


def run(program: str, words: list) -> dict:
    """What a command prints as JSON."""
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(f"{program} {words}: {done.stderr}")
    return json.loads(done.stdout)


def knows_gap(program: str) -> bool:
    """Whether the program has `--gap`."""
    helped = subprocess.run([program, "train", "--help", "all"], capture_output=True, text=True)
    return "--gap" in helped.stdout


def job(programs: list[str], name: str, repeats: int, folder: Path, source: Path):
    """The least seconds and the objective of every program."""
    data, options = JOBS[name]
    train, test = (unpack(folder, source, data, part) for part in ("train", "test"))
    seconds, objectives = [float("inf")] * 2, [0.0] * 2
    gaps = [knows_gap(program) for program in programs]
    for _ in range(repeats):
        for at, program in enumerate(programs):
            model = folder / f"model{at}"
            if "predict" not in name or not model.with_suffix(f".{data}").exists():
                gap = ["--gap", 1e6] if name.startswith("linear") and gaps[at] else []
                words = ["train", train, *options.split(), *gap, "--threads", 1]
                words += ["--json", "-o", model]
                result = run(program, words)
                objectives[at] = result["primal"]
                spent = result["fit_cpu_seconds"]
            if "predict" in name:
                model.rename(model.with_suffix(f".{data}")) if model.exists() else None
                model = model.with_suffix(f".{data}")
                words = ["predict", test, "--model", model, "--threads", 1, "--json"]
                result = run(program, [*words, "-o", folder / "predictions"])
                spent = result["predict_cpu_seconds"]
                objectives[at] = result["accuracy"]
            seconds[at] = min(seconds[at], spent)
    return seconds, objectives


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    source = os.environ.get("WIDEMARGIN_DATA")
    if not source or not Path(source).is_dir():
        sys.exit("skipped: set WIDEMARGIN_DATA to a folder of data sets (see bench/README.md)")
    print(
        "| job | CPU s before | after | after / before | objective or accuracy: relative change |"
    )
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in JOBS:
            if arguments.names and not any(part in name for part in arguments.names):
                continue
            programs = [arguments.before, arguments.after]
            seconds, objectives = job(programs, name, arguments.repeats, Path(folder), Path(source))
            change = abs(objectives[1] - objectives[0]) / max(abs(objectives[0]), 1e-300)
            ratio = seconds[1] / seconds[0]
            print(
                f"| {name} | {seconds[0]:.4f} | {seconds[1]:.4f} | {ratio:.2f} | {change:.1e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
