"""Tables 5.1 to 5.3 of Xu (2007), unsupervised chains, beside ours, as Markdown on standard output.

Errors are the share of positions with the wrong state under the best one-to-one naming of states,
mean and standard error over repeats. The convex relaxation (CDHMM of tables 5.1 and 5.2) is not
part of the package: its published column stands alone. ACDHMM is `ChainClustering` from the Viterbi
path of an EM run; "one run" is the mean over the starts of a repeat. The thesis's protein file is
replaced by CB513 (WIDEMARGIN_DATA), drawn anew.
"""

from __future__ import annotations

import csv
import lzma
import os
import warnings
from itertools import permutations
from pathlib import Path

import numpy as np

from widemargin import CategoricalHMM, ChainClustering

REPEATS, STARTS = 10, 10
#: Probability of moving to the other state; CDHMM, ACDHMM and EM of tables 5.1 and 5.2.
SYNTHETIC = {
    0.95: (3.38, 14.46, 15.09),
    0.9: (8.12, 17.34, 17.49),
    0.8: (22.12, 26.56, 30.06),
    0.7: (31.5, 38.58, 39.9),
}
PROTEIN = {1: (51.75, 56.67, 58.11), 3: (50.38, 53.65, 57.23)}
#: Samples, sequences in each; ACDHMM and EM of table 5.3.
LARGE = {(20, 2): (43.12, 46.27), (10, 5): (44.33, 48.67), (5, 10): (46.44, 48.67)}


def error(found: list[int], true: list[int], states: int) -> float:
    """Return the percentage of wrong states under the best naming."""
    found_, true_ = np.asarray(found), np.asarray(true)
    best = max(np.mean(np.array(names)[found_] == true_) for names in permutations(range(states)))
    return 100 * (1 - float(best))


def split(flat: np.ndarray, lengths: list[int]) -> list[list[int]]:
    """Return a list for each sequence."""
    return [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])]


def learn(symbols, rows, lengths, states, true, C, starts=STARTS):
    """Return the errors of EM and of ACDHMM of each start, and which start was the most likely."""
    errors, likelihoods = [], []
    for start in range(starts):
        hmm = CategoricalHMM(states, n_iter=200, tol=1e-4, random_state=start)
        hmm.fit(symbols[:, None], lengths)
        path = hmm.predict(symbols[:, None], lengths)
        em = ours = error(path, true, states)
        if len(set(path)) == states:
            model = ChainClustering(C=C).fit(rows, split(path, lengths))
            ours = error(np.concatenate(model.labels_), true, states)
        errors.append((em, ours))
        likelihoods.append(hmm.score(symbols[:, None], lengths))
    return np.array(errors), int(np.argmax(likelihoods))


def shown(values) -> str:
    """Return mean and standard error."""
    values = np.asarray(values, dtype=float)
    return f"{values.mean():.1f} ± {values.std(ddof=1) / np.sqrt(len(values)):.1f}"


def synthetic() -> None:
    """Print the table of the four synthetic sets with its four reference columns."""
    print("\n## Synthetic chains (tables 5.1 and 5.2)\n")
    print(
        "| moving | CDHMM | ACDHMM | ours, one run | ours, likeliest "
        "| EM | EM, one run | EM, likeliest "
        "| true model, Viterbi | true model, posterior | state = symbol |"
    )
    print("|" + "---|" * 11)
    for q, (cdhmm, acdhmm, em) in SYNTHETIC.items():
        columns: list[list[float]] = [[] for _ in range(7)]
        for repeat in range(REPEATS):
            rng = np.random.RandomState(1000 * repeat + round(100 * q))
            states, symbols = [], []
            for _ in range(10):
                state = rng.randint(2)
                for _ in range(8):
                    states.append(state)
                    symbols.append(state if rng.rand() < q else 1 - state)
                    state = 1 - state if rng.rand() < q else state
            lengths, observed = [8] * 10, np.array(symbols)
            rows = [[{f"s{s}": 1.0} for s in part] for part in split(observed, lengths)]
            errors, likely = learn(observed, rows, lengths, 2, states, C=1 / 0.01)
            true = CategoricalHMM(2)
            true.startprob_, true.transmat_ = np.full(2, 0.5), np.array([[1 - q, q], [q, 1 - q]])
            true.emissionprob_ = np.array([[q, 1 - q], [1 - q, q]])
            path = true.predict(observed[:, None], lengths)
            posterior = true.predict_proba(observed[:, None], lengths).argmax(axis=1)
            found = [
                errors[:, 1].mean(),
                errors[likely, 1],
                errors[:, 0].mean(),
                errors[likely, 0],
                error(path, states, 2),
                error(posterior, states, 2),
                error(symbols, states, 2),
            ]
            for column, value in zip(columns, found, strict=True):
                column.append(value)
        ours = [shown(column) for column in columns]
        print(
            f"| {100 * q:.0f} % | {cdhmm} | {acdhmm} | {ours[0]} | {ours[1]} | {em} | "
            + " | ".join(ours[2:])
            + " |",
            flush=True,
        )


def proteins() -> list[tuple[str, str]]:
    """Return sequences and structures (H, E, C) of CB513."""
    path = Path(os.environ.get("WIDEMARGIN_DATA", "data")) / "cb513" / "CB513.csv.xz"
    if not path.exists():
        return []
    with lzma.open(path, "rt") as lines:
        rows = list(csv.DictReader(lines))
    names = {name.strip().lower(): name for name in rows[0]}
    sequence = next(names[n] for n in names if n in ("sequence", "seq", "input"))
    structure = next(names[n] for n in names if "3" in n)
    return [
        (r[sequence].strip(), r[structure].strip()) for r in rows if len(r[sequence].strip()) >= 10
    ]


def windows(sequence: str, size: int) -> list[dict[str, float]]:
    """Return the acids around each position, an indicator for each offset."""
    half = size // 2
    padded = "-" * half + sequence + "-" * half
    return [{f"{o}{padded[k + o]}": 1.0 for o in range(size)} for k in range(len(sequence))]


def draw(rng, data, count, length):
    """Return symbols of the middle acid, structures and sequences of a sample."""
    chosen = rng.permutation(len(data))[:count]
    parts = []
    for place in chosen:
        acids, structure = data[place]
        first = rng.randint(len(acids) - length + 1) if length else 0
        end = first + length if length else len(acids)
        parts.append((acids[first:end], structure[first:end]))
    codes = {
        acid: code for code, acid in enumerate(sorted({a for acids, _ in parts for a in acids}))
    }
    kinds = {kind: code for code, kind in enumerate(sorted({s for _, t in parts for s in t}))}
    symbols = np.array([codes[a] for acids, _ in parts for a in acids])
    true = [kinds[s] for _, structure in parts for s in structure]
    return symbols, true, [acids for acids, _ in parts], max(len(kinds), 3)


def protein_tables() -> None:
    """Print the protein rows of tables 5.1 to 5.3."""
    data = proteins()
    if not data:
        print("\nCB513 was not found: set WIDEMARGIN_DATA.")
        return
    print("\n## Proteins, ten subsequences of length 10 (tables 5.1 and 5.2)\n")
    print("| window | CDHMM | ACDHMM | ours, one run | EM | EM, one run | one state for all |")
    print("|" + "---|" * 7)
    for size, (cdhmm, acdhmm, em) in PROTEIN.items():
        found = []
        for repeat in range(REPEATS):
            symbols, true, acids, states = draw(np.random.RandomState(repeat), data, 10, 10)
            lengths = [len(a) for a in acids]
            if size > 1:
                joined = ["".join(("-" + a + "-")[k : k + 3]) for a in acids for k in range(len(a))]
                names = {word: code for code, word in enumerate(sorted(set(joined)))}
                symbols = np.array([names[word] for word in joined])
            rows = [[{f"s{s}": 1.0} for s in part] for part in split(symbols, lengths)]
            errors, _ = learn(symbols, rows, lengths, states, true, C=1.0)
            found.append(
                (errors[:, 1].mean(), errors[:, 0].mean(), error([0] * len(true), true, states))
            )
        ours, plain, constant = (shown(column) for column in np.array(found).T)
        print(f"| {size} | {cdhmm} | {acdhmm} | {ours} | {em} | {plain} | {constant} |", flush=True)
    print("\n## Whole proteins, a window of 7 acids (table 5.3)\n")
    print("| samples × sequences | ACDHMM | ours | EM | EM, ours | one state for all |")
    print("|" + "---|" * 6)
    for (samples, count), (acdhmm, em) in LARGE.items():
        found = []
        for sample in range(samples):
            symbols, true, acids, states = draw(np.random.RandomState(50 + sample), data, count, 0)
            lengths, rows = [len(a) for a in acids], [windows(a, 7) for a in acids]
            errors, _ = learn(symbols, rows, lengths, states, true, C=1.0, starts=1)
            found.append((errors[0, 1], errors[0, 0], error([0] * len(true), true, states)))
        ours, plain, constant = (shown(column) for column in np.array(found).T)
        print(
            f"| {samples} × {count} | {acdhmm} | {ours} | {em} | {plain} | {constant} |", flush=True
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(
        "# Unsupervised chains beside Xu (2007)\n\n" + (__doc__ or "").split("\n\n", 1)[1].strip()
    )
    synthetic()
    protein_tables()
