"""Accuracy and time of approximate kernel features beside the exact kernel machine.

    WIDEMARGIN=path/to/widemargin WIDEMARGIN_DATA=folder python bench/approximate.py [mnist ijcnn1]

Writes a table in Markdown for each data set: the machine, processor seconds of training and of
predicting on one thread, and the share of right answers on the test rows.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from linear import PROGRAM, digits, read
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
    """Return seconds of training and predicting, and the accuracy."""
    model, answers = folder / "model.wm", folder / "answers"
    shared = ["--threads", "1", "--json"]
    command = [PROGRAM, "train", train, *options, "-o", model, *shared]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    fitted = json.loads(done.stdout)["fit_cpu_seconds"]
    command = [PROGRAM, "predict", test, "--model", model, "-o", answers, *shared]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [float(line.split()[0]) for line in answers.read_text().split("\n") if line]
    return fitted, json.loads(done.stdout)["predict_cpu_seconds"], np.array(found)


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
            fitted, predicted, found = measure(train, test, folder, given)
            share = np.mean(found == truth)
            print(f"| {title} | {fitted:.2f} | {predicted:.2f} | {share:.4f} |", flush=True)


def main():
    """Print the tables of the data sets that are named, or of all."""
    if "WIDEMARGIN_DATA" not in os.environ:
        print("WIDEMARGIN_DATA is not set: nothing to measure")
        return
    for name in sys.argv[1:] or SETTINGS:
        curve(name)


if __name__ == "__main__":
    main()
