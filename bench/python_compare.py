"""What Python costs, and the ratios of the core's bars measured from Python; writes bench/python.md.

    python python_compare.py [--problems digits,mnist10k] [--rounds 3] [--no-peers]

Needs the package in bench/.venv (`bench/.venv/bin/pip install .`, which builds it for release), the
command line (`cargo build --release`) and WIDEMARGIN_DATA. Runs are interleaved, each in a fresh
process; the best of the rounds counts. The peers get what they are fastest with: scikit-learn f64 (a9a:
sparse), scikit-learn-intelex f32.
"""

import argparse
import json
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path

from bars import BARS
from compare import keep, machine, seconds, verdict
from problems import PROBLEMS, problem as open_problem
from runners import HERE, measured, run

OVERHEAD = 0.03
PYTHON = "widemargin, Python"
RUST = "widemargin"
PAGE = HERE / "python.md"
FENCE = "<!-- measured by python_stress.py -->"


def python_run(target, threads, kind=None):
    repeats = 20 if target.name == "digits" else 2
    command = [sys.executable, HERE / "python_run.py", target.name, threads, repeats]
    text, _ = measured(command + ([kind] if kind else []), threads)
    return json.loads(text.splitlines()[-1])


def measure(names, rounds, with_peers):
    store = {}
    bars = [bar for bar in BARS if bar.problem in names and bar.peer != "libsvm-rs"]
    jobs = {}
    for bar in bars:
        jobs.setdefault((bar.problem, bar.threads), set()).add(bar.peer)
    for (name, threads), peers in jobs.items():
        target = open_problem(name)
        for _ in range(rounds):
            for peer in (PYTHON, RUST, *(sorted(peers) if with_peers else ())):
                result = (
                    python_run(target, threads) if peer == PYTHON else run(peer, target, threads)
                )
                where = (peer, name, threads)
                for extra in ("inside", "outside", "again_wall"):
                    if extra in result:
                        old = store.get(where, result)[extra]
                        result[extra] = min(result[extra], old)
                keep(store, where, result)
                store[where].update(
                    {k: result[k] for k in ("inside", "outside", "again_wall") if k in result}
                )
                print(
                    f"  {name:12} {peer:20} {threads} thread(s) fit {result['fit_cpu']:.3f} CPU s, "
                    f"{result['fit_wall']:.3f} s; predict {result['predict_cpu']:.4f} CPU s",
                    file=sys.stderr,
                    flush=True,
                )
    return store


def overhead_table(store):
    lines = [
        "| problem | threads | `fit` | outside the compiled half | share | Rust's `fit` (CPU) "
        "| Python's (CPU) | Rust's `predict` (CPU) | Python's (CPU) |",
        "|--|--|--|--|--|--|--|--|--|",
    ]
    for (peer, name, threads), entry in store.items():
        if peer == PYTHON:
            rust = store[RUST, name, threads]
            share = entry["outside"] / entry["inside"]
            mark = f" {verdict(share <= OVERHEAD)}" if name == "mnist10k" else ""
            lines.append(
                f"| {PROBLEMS[name].title} | {threads} | {seconds(entry['fit_wall'])} | "
                f"{seconds(entry['outside'])} | {share:.1%}{mark} | {seconds(rust['fit_cpu'])} | "
                f"{seconds(entry['fit_cpu'])} | {seconds(rust['predict_cpu'])} | "
                f"{seconds(entry['predict_cpu'])} |"
            )
    return lines


def ratio_table(store):
    lines = [
        "| problem | stage | peer | threads | clock | peer | ours from Python | ratio | bar | |",
        "|--|--|--|--|--|--|--|--|--|--|",
    ]
    for bar in BARS:
        peer = store.get((bar.peer, bar.problem, bar.threads))
        ours = store.get((PYTHON, bar.problem, bar.threads))
        if peer and ours:
            ratio = peer[bar.clock] / ours[bar.clock]
            lines.append(
                f"| {PROBLEMS[bar.problem].title} | {bar.stage} | {bar.peer} | {bar.threads} | "
                f"{bar.clock.split('_')[1]} | {seconds(peer[bar.clock])} | {seconds(ours[bar.clock])} | "
                f"{ratio:.1f}× | {bar.ratio:g}× | {verdict(ratio >= bar.ratio)} |"
            )
    return lines


def precision_table(names, rounds):
    lines = [
        '| problem | float32 | float64 (double precision) | float64, `precision="single"` is '
        "float32's |",
        "|--|--|--|--|",
    ]
    for name in names:
        target = open_problem(name)
        kinds = ("csr32", "csr64") if target.sparse else ("f32", "f64")
        single, double = (
            min((python_run(target, 1, kind) for _ in range(rounds)), key=lambda r: r["fit_cpu"])
            for kind in kinds
        )
        lines.append(
            f"| {PROBLEMS[name].title} | {seconds(single['fit_cpu'])} | "
            f"{seconds(double['fit_cpu'])} | {double['fit_cpu'] / single['fit_cpu']:.2f}× |"
        )
    lines[0] = "| problem | float32 rows | float64 rows | ratio |"
    return lines


def memory_table():
    results = {}
    for layout in ("c32", "c64", "f32"):
        text, _ = measured([sys.executable, HERE / "python_memory.py", layout], 1)
        results[layout] = json.loads(text.splitlines()[-1])
    titles = {"c32": "float32, C order", "c64": "float64, C order", "f32": "float32, Fortran order"}
    lines = ["| rows 60 000 × 784 | array | added by `fit` at its peak |", "|--|--|--|"]
    for layout, result in results.items():
        lines.append(
            f"| {titles[layout]} | {result['array_mb']:.0f} MB | {result['added_mb']:.0f} MB |"
        )
    copied = results["f32"]["added_mb"] - results["c32"]["added_mb"]
    array = results["c32"]["array_mb"]
    passed = abs(copied - array) < 0.1 * array
    same = abs(results["c64"]["added_mb"] - results["c32"]["added_mb"]) < 0.1 * array
    lines += [
        "",
        f"An array that has to be copied adds {copied:.0f} MB more, its own size: "
        f"{verdict(passed)}. A float64 array in C order adds what a float32 one does, the packed "
        f"float32 rows: {verdict(same)}.",
    ]
    return lines


def report(store, names, rounds):
    section = lambda title, lines: ["", f"## {title}", "", *lines]
    text = [
        "# widemargin from Python",
        "",
        f"{date.today().isoformat()}. {machine()} widemargin {version('widemargin')}.",
        "",
        "Written by bench/python_compare.py: RBF kernel, tolerance 1e-3, the C, γ and cache of "
        f"bench/problems.py. Interleaved runs in fresh processes, best of {rounds} rounds; data in memory.",
        *section(
            "What Python costs",
            [
                "Of the time of `SVC.fit` on float32 arrays, what is not spent in the compiled half is "
                f"Python's: checking the input, labels, attributes. Allowed on MNIST 10k: {OVERHEAD:.0%}.",
                "",
                *overhead_table(store),
            ],
        ),
        *section("Ratios", ratio_table(store)),
        *section(
            "Precision follows the data (CPU seconds of `fit`, one thread)",
            precision_table([n for n in names if n not in ("mnist60k",)], rounds),
        ),
        *section("No copy", memory_table()),
        "",
    ]
    kept = PAGE.read_text().partition(FENCE)[2] if PAGE.exists() else "\n"
    return "\n".join(text) + FENCE + kept


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", default="digits,synth20k,letter,a9a,mnist10k,mnist10k_eo")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-peers", action="store_true", help="only what Python costs")
    arguments = parser.parse_args()
    names = arguments.problems.split(",")
    store = measure(names, arguments.rounds, not arguments.no_peers)
    text = report(store, names, arguments.rounds)
    if arguments.no_peers:
        print(text)
    else:
        Path(PAGE).write_text(text)
        print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
