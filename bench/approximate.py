"""Accuracy and time of approximate kernel features beside the exact kernel machine.

    WIDEMARGIN=path/to/widemargin WIDEMARGIN_DATA=folder python bench/approximate.py
        [mnist ijcnn1 kernels]

Writes a table in Markdown for each data set: the machine, processor seconds of training and of
predicting on one thread, and the share of right answers on the test rows. `kernels` are learnt
weights of five kernels on 100 000 rows of ijcnn1, with the memory of the training.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from linear import PROGRAM, digits, read
from scipy.sparse import vstack
from sklearn.datasets import dump_svmlight_file

#: C and γ of every data set, for all machines.
SETTINGS = {"mnist": (10, 0.02), "ijcnn1": (10, 2)}
SIZES = (125, 250, 500, 1000, 2000, 4000)


def tables(name):
    """Return rows and labels for training and testing."""
    if name != "mnist":
        return read(name, "train"), read(name, "test")
    (X, y), (held, answers) = digits("train"), digits("t10k")
    return (X[:20_000], y[:20_000]), (held, answers)


def measure(train, test, folder, options):
    """Return the report of the training, seconds of predicting, and the predictions."""
    model, answers = folder / "model.wm", folder / "answers"
    shared = ["--threads", "1", "--json"]
    command = [PROGRAM, "train", train, *options, "-o", model, *shared]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    command = [PROGRAM, "predict", test, "--model", model, "-o", answers, *shared]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [float(line.split()[0]) for line in answers.read_text().split("\n") if line]
    return report, json.loads(done.stdout)["predict_cpu_seconds"], np.array(found)


def curve(name):
    """Print the table of one data set."""
    penalty, width = SETTINGS[name]
    (X, y), (held, truth) = tables(name)
    print(f"\n{name}, {X.shape[0]} rows to train and {held.shape[0]} to test\n")
    print("| machine | train s | predict s | accuracy |\n|--|--|--|--|")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        train, test = folder / "train.txt", folder / "test.txt"
        dump_svmlight_file(X, y, str(train), zero_based=False)
        dump_svmlight_file(held, truth, str(test), zero_based=False)
        machines = {"linear": ["--linear"], "Gaussian kernel, exact": ["--gamma", str(width)]}
        for kind in ("rff", "nystroem"):
            for size in SIZES:
                rule = ["--linear", "--approximate", f"{kind}:{size}", "--gamma", str(width)]
                machines[f"{kind}:{size}"] = rule
        for title, options in machines.items():
            given = [*options, "--c", str(penalty)]
            report, predicted, found = measure(train, test, folder, given)
            share = np.mean(found == truth)
            print(
                f"| {title} | {report['fit_cpu_seconds']:.2f} | {predicted:.2f} | {share:.4f} |",
                flush=True,
            )


#: Candidates of the learnt weights; the columns of ijcnn1 are scaled already.
KERNELS = "linear, rbf(gamma=2^-3:2^3:4)"


def kernels():
    """Print the table of learnt weights."""
    (X, y), (more, rest) = tables("ijcnn1")
    X, y = vstack([X, more]).tocsr(), np.concatenate([y, rest])
    count = 100_000
    print(f"\nlearnt weights, ijcnn1, {count} rows to train and {len(y) - count} to test\n")
    print("| features | train s | MB | gap | rounds | predict s | accuracy |" + "\n|--" * 7 + "|")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        train, test = folder / "train.txt", folder / "test.txt"
        dump_svmlight_file(X[:count], y[:count], str(train), zero_based=False)
        dump_svmlight_file(X[count:], y[count:], str(test), zero_based=False)
        for rule in ["rff:100", "rff:250", "nystroem:100", "nystroem:250", "nystroem:500"]:
            given = ["--kernels", KERNELS, "--approximate", rule, "--c", "10"]
            report, predicted, found = measure(train, test, folder, given)
            seconds, memory = report["fit_cpu_seconds"], report["peak_rss_bytes"] / 2**20
            gap, rounds = 1 - report["dual"] / report["primal"], report["parameters"]["rounds"]
            share = np.mean(found == y[count:])
            print(f"| {rule} | {seconds:.1f} | {memory:.0f} | {gap:.0e} | {rounds}", end="")
            print(f" | {predicted:.2f} | {share:.4f} |", flush=True)


def main():
    """Print the tables of the data sets that are named, or of all."""
    if "WIDEMARGIN_DATA" not in os.environ:
        print("WIDEMARGIN_DATA is not set: nothing to measure")
        return
    for name in sys.argv[1:] or [*SETTINGS, "kernels"]:
        kernels() if name == "kernels" else curve(name)


if __name__ == "__main__":
    main()
