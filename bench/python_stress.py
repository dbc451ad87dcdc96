"""Threads, interrupts and cycles: no crash, no leak, no deadlock; adds a section to bench/python.md.

python python_stress.py [--seconds-of-threads 20] [--interrupts 100] [--cycles 1000]
"""

import argparse
import gc
import os
import random
import signal
import threading
import time
from datetime import date
from pathlib import Path

import numpy as np

import widemargin
from widemargin import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM

PAGE = Path(__file__).with_name("python.md")
FENCE = "<!-- measured by python_stress.py -->"


def resident():
    """Resident memory in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def data(rows, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 20)).astype(np.float32)
    return x, (x[:, 0] + 0.5 * rng.standard_normal(rows) > 0).astype(int) + (x[:, 1] > 1)


def threads(duration):
    """Eight threads train every machine over and over; the results must not depend on company."""
    x, y = data(400)
    machines = [SVC, lambda **k: NuSVC(nu=0.2, **k), SVR, NuSVR, OneClassSVM, SVDD]
    values = lambda m: (m.decision_function if hasattr(m, "decision_function") else m.predict)(x)
    alone = [values(make().fit(x, y)) for make in machines]
    stop = time.monotonic() + duration
    counts, wrong = [0] * 8, []

    def work(number):
        rng = random.Random(number)
        while time.monotonic() < stop:
            which = rng.randrange(len(machines))
            found = values(machines[which](n_jobs=rng.choice([1, 2])).fit(x, y))
            counts[number] += 1
            if not np.array_equal(found, alone[which]):
                wrong.append(which)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=duration + 60)
    stuck = sum(worker.is_alive() for worker in workers)
    return sum(counts), len(wrong), stuck


def interrupts(count):
    """Ctrl-C at a random moment of a training; the next training must be none the worse."""
    x, y = data(6000)
    rng = random.Random(0)
    small, labels = data(200)
    expected = SVC().fit(small, labels).decision_function(small)
    delays, missed, wrong = [], 0, 0
    for number in range(count):
        sent = []

        def send():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(rng.uniform(0.0, 0.4), send)
        try:
            timer.start()
            machine = SVC if number % 2 else NuSVR
            machine(C=1e5, gamma=0.5, tol=1e-7, n_jobs=1 + number % 2).fit(x, y)
            time.sleep(1)
            missed += 1
        except KeyboardInterrupt:
            delays.append(time.monotonic() - sent[0])
        timer.join()
        wrong += not np.array_equal(SVC().fit(small, labels).decision_function(small), expected)
    return delays, missed, wrong


def cycles(count):
    """Train, predict, forget; memory must not grow."""
    x, y = data(300)
    marks = []
    for number in range(count):
        model = SVC(n_jobs=1 + number % 2, callbacks=lambda progress: None).fit(x, y)
        model.predict(x)
        model.support_vectors_
        del model
        if number % (count // 20) == 0:
            gc.collect()
            marks.append(resident())
    return marks


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds-of-threads", type=float, default=20)
    parser.add_argument("--interrupts", type=int, default=100)
    parser.add_argument("--cycles", type=int, default=1000)
    arguments = parser.parse_args()
    verdict = lambda passed: "pass" if passed else "**FAIL**"
    lines = [
        "",
        "",
        "## Stress",
        "",
        f"{date.today().isoformat()}, widemargin {widemargin.__version__}; written by "
        "bench/python_stress.py.",
        "",
        "| what | result | |",
        "|--|--|--|",
    ]
    trained, wrong, stuck = threads(arguments.seconds_of_threads)
    lines.append(
        f"| 8 Python threads train six machines at once, {arguments.seconds_of_threads:g} s | "
        f"{trained} trainings, {wrong} differ from a lone one, {stuck} threads stuck | "
        f"{verdict(not wrong and not stuck)} |"
    )
    print(lines[-1], flush=True)
    delays, missed, wrong = interrupts(arguments.interrupts)
    lines.append(
        f"| {arguments.interrupts} interrupts at random moments | {len(delays)} "
        f"`KeyboardInterrupt`, {missed} lost, slowest {max(delays):.2f} s, mean "
        f"{np.mean(delays):.2f} s; {wrong} wrong results after | "
        f"{verdict(not missed and not wrong and max(delays) < 1)} |"
    )
    print(lines[-1], flush=True)
    marks = cycles(arguments.cycles)
    # The first marks include what is allocated once.
    grown = marks[-1] - marks[len(marks) // 4]
    lines.append(
        f"| {arguments.cycles} times fit, predict, del | resident memory {marks[0]:.1f} MB at "
        f"first, {marks[len(marks) // 4]:.1f} MB after a quarter, {marks[-1]:.1f} MB at the end | "
        f"{verdict(grown < 2)} |"
    )
    print(lines[-1], flush=True)
    text = PAGE.read_text() if PAGE.exists() else FENCE
    PAGE.write_text(text.partition(FENCE)[0] + FENCE + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
