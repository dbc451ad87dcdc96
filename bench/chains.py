"""Large-margin chains beside CRFsuite: CoNLL-2000 chunking and Taskar's letters, one thread.

    WIDEMARGIN_DATA=... python bench/chains.py [conll] [letters]

needs the package with an optimised build, python-crfsuite and the data sets conll2000 and ocr-letters. Times are
processor seconds of training from attributes in memory: the conversion of Python's lists is given apart.
"""

from __future__ import annotations

import io
import lzma
import os
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pycrfsuite

import widemargin

DATA = Path(os.environ.get("WIDEMARGIN_DATA", "data"))
#: The bars: share of right tokens, and the factors of the time of other trainers.
TOKENS, PERCEPTRON, LBFGS = 0.959, 1.0, 10.0


def conll(name: str) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Return attributes and chunk tags: words and tags -2..+2, tag pairs, word pairs."""
    with zipfile.ZipFile(DATA / "conll2000" / "conll2000.zip") as archive:
        text = archive.read(f"conll2000/{name}.txt").decode()
    X, y = [], []
    for block in text.strip().split("\n\n"):
        rows = [line.split() for line in block.splitlines() if line.strip()]
        if not rows:
            continue
        words = ["_B-2", "_B-1", *(row[0] for row in rows), "_E1", "_E2"]
        tags = ["_B-2", "_B-1", *(row[1] for row in rows), "_E1", "_E2"]
        sequence = []
        for k in range(len(rows)):
            w, t = words[k : k + 5], tags[k : k + 5]
            sequence.append(
                [f"w{o}={v}" for o, v in enumerate(w)]
                + [f"t{o}={v}" for o, v in enumerate(t)]
                + [f"tt{o}={t[o]}|{t[o + 1]}" for o in range(4)]
                + [f"ww{o}={w[o]}|{w[o + 1]}" for o in (1, 2)]
            )
        X.append(sequence)
        y.append([row[2] for row in rows])
    return X, y


def letters(part: str) -> tuple[list[np.ndarray], list[list[int]]]:
    """Return pixels and letters of the words."""
    X: dict[int, list[np.ndarray]] = {}
    y: dict[int, list[int]] = {}
    with lzma.open(DATA / "ocr-letters" / f"ocr-letters.{part}.libsvm.xz", "rt") as lines:
        for line in lines:
            label, query, *values = line.split()
            row = np.zeros(128)
            for value in values:
                place, number = value.split(":")
                row[int(place) - 1] = float(number)
            word = int(query.removeprefix("qid:"))
            X.setdefault(word, []).append(row)
            y.setdefault(word, []).append(int(label))
    return [np.array(rows) for rows in X.values()], list(y.values())


def chunks(tags: list[str]) -> set[tuple[int, int, str]]:
    """Return the chunks of a sequence of B, I and O tags."""
    found, start = set(), None
    for k, tag in enumerate([*tags, "O"]):
        inside = start is not None and tag == f"I-{start[1]}"
        if start is not None and not inside:
            found.add((start[0], k, start[1]))
            start = None
        if tag != "O" and not inside:
            start = (k, tag[2:])
    return found


def quality(true: list, own: list) -> tuple[float, float]:
    """Return the share of right tokens and the F1 of chunks (0 where there are none)."""
    pairs = [(a, b) for t, o in zip(true, own) for a, b in zip(t, o)]
    right = sum(str(a) == str(b) for a, b in pairs) / len(pairs)
    if not isinstance(true[0][0], str):
        return right, 0.0
    sets = [(chunks(t), chunks(o)) for t, o in zip(true, own)]
    both = sum(len(a & b) for a, b in sets)
    return right, 2 * both / sum(len(a) + len(b) for a, b in sets)


def crfsuite(X, y, test, algorithm: str, parameters: dict) -> tuple[float, float, list]:
    """Return the seconds of conversion and of training, and the predictions."""
    started = time.process_time()
    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    for sequence, tags in zip(X, y):
        trainer.append(pycrfsuite.ItemSequence(sequence), [str(tag) for tag in tags])
    trainer.set_params(parameters)
    converted = time.process_time() - started
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        started = time.process_time()
        trainer.train(path)
        trained = time.process_time() - started
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        predictions = [tagger.tag(pycrfsuite.ItemSequence(sequence)) for sequence in test]
        tagger.close()
    return converted, trained, predictions


def ours(X, y, test, **parameters) -> tuple[float, float, list, widemargin.ChainSVC]:
    """Return the seconds of conversion and of training, the predictions and the model."""
    started = time.process_time()
    model = widemargin.ChainSVC(**parameters).fit(X, y)
    whole = time.process_time() - started
    trained = model.training_seconds_
    return whole - trained, trained, model.predict(test), model


def row(out: io.StringIO, name: str, converted, trained, true, own, remark="") -> float:
    """Write a row; return the share of right tokens."""
    right, f1 = quality(true, own)
    f1 = f"{100 * f1:.2f}" if f1 else "–"
    line = f"| {name} | {converted:.2f} | {trained:.2f} | {100 * right:.2f} | {f1} | {remark} |"
    print(line, flush=True)
    out.write(line + "\n")
    return right


HEAD = "| | conversion, s | training, s | tokens, % | F1 | |\n|---|---|---|---|---|---|\n"


def chosen(out: io.StringIO, X, y) -> tuple[float, int]:
    """Return C and passes, chosen on the last fifth of the training sentences.

    The fewest passes, and of those the best C, whose share of right tokens there is within a tenth of a point of the
    largest one.
    """
    cut = len(X) * 4 // 5
    found = {}
    for C in (0.03, 0.1, 0.3):
        for passes in (3, 4, 6, 10):
            own = ours(X[:cut], y[:cut], X[cut:], C=C, max_iter=passes, tol=1e-3)[2]
            found[passes, C] = quality(y[cut:], own)[0]
    close = [key for key in found if found[key] >= max(found.values()) - 0.001]
    passes = min(key[0] for key in close)
    C = max((found[key], key[1]) for key in close if key[0] == passes)[1]
    tried = ", ".join(f"{c:g}, {n}: {100 * value:.2f}" for (n, c), value in sorted(found.items()))
    out.write(
        f"\nTrained on the first {cut} sentences, % of tokens of the other {len(X) - cut} that are right at "
        f"(C, passes): {tried}. Taken, as the fewest passes within 0.1 of the best: C = {C:g}, {passes} passes.\n"
    )
    return C, passes


def run_conll(out: io.StringIO) -> None:
    """Chunking: both trainers of CRFsuite and ours, in turn."""
    (X, y), (test, true) = conll("train"), conll("test")
    out.write(f"\n## CoNLL-2000 chunking, {len(X)} sentences, tested on {len(test)}\n")
    C, passes = chosen(out, X, y)
    out.write(f"\n{HEAD}")
    times: dict[str, list[float]] = {"ours": [], "perceptron": [], "lbfgs": []}
    right = 0.0
    for round in range(3):
        c, t, own, model = ours(X, y, test, C=C, max_iter=passes, tol=1e-3)
        remark = f"gap {100 * model.gap_:.1f} %"
        right = row(out, f"ChainSVC, {passes} passes", c, t, true, own, remark)
        times["ours"].append(t)
        c, t, own = crfsuite(X, y, test, "ap", {"max_iterations": 10})
        row(out, "CRFsuite, averaged perceptron, 10 passes", c, t, true, own)
        times["perceptron"].append(t)
        if round == 0:
            c, t, own = crfsuite(X, y, test, "lbfgs", {"max_iterations": 100})
            row(out, "CRFsuite, L-BFGS, 100 iterations (one run)", c, t, true, own)
            times["lbfgs"].append(t)
    own, perceptron, lbfgs = (float(np.median(list_)) for list_ in times.values())
    verdict = [
        (f"{100 * TOKENS:.1f} % of tokens ({100 * right:.2f})", right >= TOKENS),
        (
            f"faster than the averaged perceptron ({perceptron / own:.1f} times, medians)",
            perceptron > PERCEPTRON * own,
        ),
        (f"{LBFGS:.0f} times faster than L-BFGS ({lbfgs / own:.1f} times)", lbfgs >= LBFGS * own),
    ]
    out.write("\n" + "".join(f"- {what}: {'pass' if ok else 'FAIL'}\n" for what, ok in verdict))


def run_letters(out: io.StringIO) -> None:
    """Taskar's letters at the C of the published run."""
    (X, y), (test, true) = letters("train"), letters("test")
    out.write(f"\n## Letters, {len(X)} words, tested on {len(test)}\n\n{HEAD}")
    for passes in (10, 50, 200):
        c, t, own, model = ours(X, y, test, C=0.16, max_iter=passes, tol=1e-4)
        primal = model.objective_ + model.dual_gap_
        remark = f"primal {primal:.1f}, dual {model.objective_:.1f}"
        row(out, f"ChainSVC, C 0.16, {passes} passes", c, t, true, own, remark)
    c, t, own, model = ours(X, y, test, C=0.16, kernel="poly", degree=2, gamma=0.1, tol=1e-2)
    row(out, "ChainSVC, C 0.16, squared kernel", c, t, true, own, f"gap {100 * model.gap_:.1f} %")
    named = [[{f"p{j}": 1.0 for j in np.flatnonzero(r)} for r in word] for word in X]
    named_test = [[{f"p{j}": 1.0 for j in np.flatnonzero(r)} for r in word] for word in test]
    c, t, own = crfsuite(named, y, named_test, "ap", {"max_iterations": 10})
    row(out, "CRFsuite, averaged perceptron, 10 passes", c, t, true, own)


def main() -> None:
    """Run what was asked for and write bench/chains.md."""
    out = io.StringIO()
    wanted = sys.argv[1:] or ["conll", "letters"]
    for name, part in (("conll", run_conll), ("letters", run_letters)):
        if name in wanted:
            part(out)
    print(out.getvalue())
    path = Path(__file__).with_name("chains.md")
    path.write_text(
        f"# Large-margin chains\n\n{(__doc__ or '').split('    WIDE')[0].strip()}\n"
        + out.getvalue()
    )


if __name__ == "__main__":
    main()
