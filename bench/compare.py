"""Trains and predicts with widemargin and its peers side by side and prints the table of bars.

    python compare.py                    # everything, interleaved, best of 3
    python compare.py --problems digits,letter --rounds 5
    python compare.py --recorded         # peers' times from the last full run, only ours measured
    python compare.py --peers-only       # record the peers, ours not needed

A full run writes bench/results.md; all keep bench/.cache/measurements.json. Times count fitting and predicting only:
data is already in memory, model files are not written. Runs are interleaved (every program once,
then again), each in a fresh process; the best of the rounds counts.
"""

import argparse
import json
import platform
import subprocess
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path

from bars import BARS, LARGE, SAME_OBJECTIVE, SPEED_UP
from problems import CACHE, PROBLEMS, SCALING_ROWS, problem as open_problem
from runners import HERE, run

STORE = CACHE / "measurements.json"
TIMES = ("fit_cpu", "fit_wall", "predict_cpu", "predict_wall")


def key(peer, name, threads):
    return f"{peer}|{name}|{threads}"


def needed(names, peers_only, ours_only):
    """Every (peer, problem, threads) the bars ask for, grouped by problem so runs interleave."""
    jobs = {}
    for bar in BARS:
        if bar.problem in names:
            jobs.setdefault((bar.problem, bar.threads), []).extend(["widemargin", bar.peer])
    for (name, threads), peers in jobs.items():
        unique = list(dict.fromkeys(peers))
        if peers_only:
            unique.remove("widemargin")
        if ours_only:
            unique = ["widemargin"]
        yield name, threads, unique


def measure(store, names, rounds, peers_only, ours_only, only_threads=None):
    for name, threads, peers in needed(names, peers_only, ours_only):
        if only_threads not in (None, threads):
            continue
        target = open_problem(name)
        for peer in peers:
            store.pop(key(peer, name, threads), None)
        for round_number in range(rounds):
            for peer in peers:
                result = run(peer, target, threads, want_dual=round_number == 0)
                keep(store, key(peer, name, threads), result)
                print(
                    f"  {name:12} {peer:14} {threads} thread(s) fit {result['fit_cpu']:.3f} "
                    f"CPU s, {result['fit_wall']:.3f} s; predict {result['predict_cpu']:.4f} "
                    f"CPU s",
                    file=sys.stderr,
                    flush=True,
                )
        save(store)


def measure_speed_up(store, names, rounds):
    """Our training on one and on two threads by turns, so that both see the same machine."""
    for name in SPEED_UP:
        if name in names:
            target = open_problem(name)
            for threads in (1, 2):
                store.pop(key("speed-up", name, threads), None)
            for _ in range(rounds):
                for threads in (1, 2):
                    keep(store, key("speed-up", name, threads), run("widemargin", target, threads))
    save(store)


def keep(store, where, result):
    """Adds one run: times keep their minimum, memory its maximum, the first dual stays."""
    entry = store.setdefault(where, dict(result, runs=0))
    for name in TIMES:
        entry[name] = min(entry[name], result[name])
    entry["peak_rss_mb"] = max(entry["peak_rss_mb"], result["peak_rss_mb"])
    entry["runs"] += 1


def save(store):
    CACHE.mkdir(exist_ok=True)
    STORE.write_text(json.dumps(store, indent=1, sort_keys=True))


def seconds(value):
    return f"{value:.2f}" if value >= 1 else f"{value * 1000:.3g} ms"


def verdict(passed):
    return "pass" if passed else "**FAIL**"


def bars_table(store, names, stage):
    lines = [
        "| problem | peer | threads | clock | peer | ours | ratio | bar | |",
        "|--|--|--|--|--|--|--|--|--|",
    ]
    for bar in BARS:
        ours = store.get(key("widemargin", bar.problem, bar.threads))
        peer = store.get(key(bar.peer, bar.problem, bar.threads))
        if bar.stage != stage or bar.problem not in names or not ours or not peer:
            continue
        ratio = peer[bar.clock] / ours[bar.clock]
        lines.append(
            f"| {PROBLEMS[bar.problem].title} | {bar.peer} | {bar.threads} | "
            f"{bar.clock.split('_')[1]} | {seconds(peer[bar.clock])} | {seconds(ours[bar.clock])} "
            f"| {ratio:.1f}× | {bar.ratio:g}× | {verdict(ratio >= bar.ratio)} |"
        )
    return lines


def solutions_table(store, names):
    """Every solution's dual objective, by one function in f64, and its distance from the best."""
    lines = [
        "| problem | program | threads | dual objective | distance from best | support vectors "
        "| accuracy | peak memory MB |",
        "|--|--|--|--|--|--|--|--|",
    ]
    worst = 0.0
    for name in names:
        entries = [
            (k.split("|"), v)
            for k, v in sorted(store.items())
            if k.split("|")[1] == name and "dual" in v
        ]
        best = max((v["dual"] for _, v in entries), default=None)
        for (peer, _, threads), entry in entries:
            distance = (best - entry["dual"]) / abs(best)
            worst = max(worst, distance)
            lines.append(
                f"| {name} | {peer} | {threads} | {entry['dual']:.6f} | {distance:.1e} | "
                f"{entry['support_vectors']} | {entry['accuracy']:.4f} | "
                f"{entry['peak_rss_mb']:.0f} |"
            )
    lines += [
        "",
        f"Largest relative distance between two programs' objectives: {worst:.1e} "
        f"(allowed {SAME_OBJECTIVE:.0e}): {verdict(worst <= SAME_OBJECTIVE)}.",
    ]
    return lines


def speed_up_table(store, names):
    lines = ["| problem | 1 thread | 2 threads | speed-up | bar | |", "|--|--|--|--|--|--|"]
    for name, bar in SPEED_UP.items():
        one, two = (store.get(key("speed-up", name, t)) for t in (1, 2))
        if name in names and one and two:
            ratio = one["fit_wall"] / two["fit_wall"]
            lines.append(
                f"| {PROBLEMS[name].title} | {seconds(one['fit_wall'])} | "
                f"{seconds(two['fit_wall'])} | {ratio:.2f}× | {bar}× | "
                f"{verdict(ratio >= bar)} |"
            )
    large = store.get(key("widemargin", LARGE["problem"], 2))
    if LARGE["problem"] in names and large:
        passed = (
            large["accuracy"] >= LARGE["accuracy"] and large["peak_rss_mb"] <= LARGE["peak_rss_mb"]
        )
        lines += [
            "",
            f"MNIST 60k: accuracy {large['accuracy']:.4f} (bar {LARGE['accuracy']}), "
            f"peak memory {large['peak_rss_mb']:.0f} MB (bar {LARGE['peak_rss_mb']}): "
            f"{verdict(passed)}.",
        ]
    return lines


SCALING_PEERS = (("widemargin", 80000), ("sklearn", 20000), ("sklearnex", 80000))


def measure_scaling(store, rounds, peers_only, ours_only):
    for n in SCALING_ROWS:
        name = f"scaling{n // 1000}k"
        target = open_problem(name)
        for peer, largest in SCALING_PEERS:
            is_ours = peer == "widemargin"
            if n > largest or (peers_only and is_ours) or (ours_only and not is_ours):
                continue
            store.pop(key(peer, name, 1), None)
            for _ in range(rounds if n <= 20000 else 1):
                result = run(peer, target, 1)
                keep(store, key(peer, name, 1), result)
            print(f"  {name:12} {peer:14} fit {result['fit_cpu']:.3f} CPU s", file=sys.stderr)
        save(store)


def scaling_table(store):
    lines = [
        "| n | widemargin s | MB | support vectors | scikit-learn s | MB | sklearnex f32 s | MB |",
        "|--|--|--|--|--|--|--|--|",
    ]
    for n in SCALING_ROWS:
        cells = []
        for peer, _ in SCALING_PEERS:
            entry = store.get(key(peer, f"scaling{n // 1000}k", 1))
            cells += (
                [seconds(entry["fit_cpu"]), f"{entry['peak_rss_mb']:.0f}"] if entry else ["–"] * 2
            )
            if peer == "widemargin":
                cells.append(str(entry["support_vectors"]) if entry else "–")
        lines.append(f"| {n} | " + " | ".join(cells) + " |")
    return lines


def processor():
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":")[1].strip()
            break
    cores = len(
        [l for l in Path("/proc/cpuinfo").read_text().splitlines() if l.startswith("processor")]
    )
    return f"{model}, {cores} cores, {platform.system()} {platform.machine()}"


def machine():
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.split()
    packages = ", ".join(
        f"{p} {version(p)}"
        for p in ("scikit-learn", "scikit-learn-intelex", "libsvm-official", "numpy")
    )
    return f"{processor()}; Python {platform.python_version()}, {packages}, libsvm-rs 0.9.2, rustc {rustc[1]}."


def report(store, names):
    section = lambda title, lines: ["", f"## {title}", "", *lines]
    return "\n".join(
        [
            "# widemargin beside its peers",
            "",
            f"{date.today().isoformat()}. {machine()}",
            "",
            "Written by `make bench` (bench/compare.py). RBF kernel, tolerance 1e-3, cache 1000 MB "
            "(MNIST 60k: 2000 MB), same data, C and γ for all. Times are of fitting and predicting "
            "only; interleaved runs in fresh processes, best of the rounds. scikit-learn gets f64 rows "
            "(a9a: sparse, its faster way), scikit-learn-intelex f32 rows. Ratio = peer ÷ ours.",
            *section("Training", bars_table(store, names, "fit")),
            *section("Prediction", bars_table(store, names, "predict")),
            *section("Threads", speed_up_table(store, names)),
            *section(
                "Growth with the number of rows (dense × 20, one thread, CPU seconds)",
                scaling_table(store),
            ),
            *section("The solutions are the same", solutions_table(store, names)),
            "",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", default=None, help="comma-separated names; default: all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--recorded", action="store_true", help="measure ours only")
    parser.add_argument("--peers-only", action="store_true", help="measure the peers only")
    parser.add_argument("--skip-scaling", action="store_true")
    parser.add_argument("--threads", type=int, help="measure again only runs on this many threads")
    parser.add_argument("--report", action="store_true", help="measure nothing, print the table")
    arguments = parser.parse_args()
    names = (
        arguments.problems.split(",")
        if arguments.problems
        else [n for n in PROBLEMS if not n.startswith("scaling")]
    )
    store = json.loads(STORE.read_text()) if STORE.exists() else {}
    if not arguments.report:
        only = arguments.threads
        measure(store, names, arguments.rounds, arguments.peers_only, arguments.recorded, only)
        if not arguments.peers_only:
            measure_speed_up(store, names, arguments.rounds)
        if not arguments.skip_scaling:
            measure_scaling(store, arguments.rounds, arguments.peers_only, arguments.recorded)
    if arguments.peers_only:
        return
    text = report(store, names)
    print(text)
    if not (arguments.problems or arguments.recorded):
        (HERE / "results.md").write_text(text)
    if "**FAIL**" in text:
        sys.exit(1)


if __name__ == "__main__":
    main()
