"""String kernels beside direct Python implementations: processor time of one thread.

    python bench/strings.py

needs the package with an optimised build. The comparison has strings of an alphabet of 20 symbols, the spectrum
kernel alone is timed on longer and longer strings of 4 symbols as well.
"""

from __future__ import annotations

import time
from collections import Counter
from itertools import product

import numpy as np

from widemargin import StringKernel


def seconds(work) -> float:
    """Return the least processor time of three runs."""
    times = []
    for _ in range(3):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def strings(count: int, length: int, letters: str) -> list[str]:
    """Return random strings."""
    rng = np.random.default_rng(0)
    return ["".join(row) for row in rng.choice(list(letters), size=(count, length))]


def spectrum(texts: list[str], k: int) -> list[list[float]]:
    """Return the matrix by dictionaries of counts."""
    counts = [Counter(text[i : i + k] for i in range(len(text) - k + 1)) for text in texts]
    return [[sum(n * b[u] for u, n in a.items() if u in b) for b in counts] for a in counts]


def mismatch(texts: list[str], k: int, letters: str) -> list[list[float]]:
    """Return the matrix for one mismatch by dictionaries of the neighbours of substrings."""
    tables = []
    for text in texts:
        table: Counter[str] = Counter()
        for i in range(len(text) - k + 1):
            part = text[i : i + k]
            table[part] += 1
            for at, letter in product(range(k), letters):
                if letter != part[at]:
                    table[part[:at] + letter + part[at + 1 :]] += 1
        tables.append(table)
    return [[sum(n * b[u] for u, n in a.items() if u in b) for b in tables] for a in tables]


def subsequence(s: str, t: str, k: int, decay: float) -> float:
    """Return the value by the table of Lodhi et al., one pair at a time."""
    below = [[1.0] * (len(t) + 1) for _ in range(len(s) + 1)]
    total = 0.0
    for level in range(k):
        table = [[0.0] * (len(t) + 1) for _ in range(len(s) + 1)]
        total = 0.0
        for i in range(1, len(s) + 1):
            run = 0.0
            for j in range(1, len(t) + 1):
                found = decay**2 * below[i - 1][j - 1] if s[i - 1] == t[j - 1] else 0.0
                total += found
                run = found + decay * run
                table[i][j] = run + decay * table[i - 1][j]
        below = table
    return total


def alignment(s: str, t: str, beta: float) -> float:
    """Return the value by the table of Saigo et al., one pair at a time."""
    equal, differ = np.exp(beta), np.exp(-beta)
    start, extend = np.exp(-2 * beta), np.exp(-0.5 * beta)
    above = [(0.0, 0.0, 0.0)] * (len(t) + 1)
    total = 1.0
    for a in s:
        row = [(0.0, 0.0, 0.0)]
        for j, b in enumerate(t, 1):
            m, x, y = above[j - 1]
            m = (equal if a == b else differ) * (1 + m + x + y)
            total += m
            up, left = above[j], row[-1]
            row.append(
                (m, start * up[0] + extend * up[1], start * (left[0] + left[1]) + extend * left[2])
            )
        above = row
    return total


def compare(name: str, kernel: StringKernel, texts: list[str], direct) -> None:
    """Print the times of both and check that they agree."""
    ours, theirs = kernel(texts), np.array(direct())
    far = np.abs(ours - theirs).max() / np.abs(theirs).max()
    fast, slow = seconds(lambda: kernel(texts)), seconds(direct)
    print(f"| {name} | {1e3 * fast:.2f} | {1e3 * slow:.0f} | {slow / fast:.0f} | {far:.0e} |")


def main() -> None:
    """Compare the four kernels, then time the spectrum kernel on longer strings."""
    letters = "ACDEFGHIKLMNPQRSTVWY"
    many, few = strings(300, 200, letters), strings(24, 100, letters)

    def pairs(value):
        return [[value(s, t) for t in few] for s in few]

    print("| kernel | ours, ms | Python, ms | times | largest relative difference |")
    print("|---|---|---|---|---|")
    raw = {"normalize": False}
    kernel = StringKernel(length=3, **raw)
    compare("spectrum, 300 of 200, k = 3", kernel, many, lambda: spectrum(many, 3))
    kernel = StringKernel("mismatch", length=4, alphabet=20, **raw)
    compare(
        "mismatch, 60 of 200, k = 4, m = 1",
        kernel,
        many[:60],
        lambda: mismatch(many[:60], 4, letters),
    )
    kernel = StringKernel("subsequence", length=4, **raw)
    compare(
        "subsequence, 24 of 100, k = 4",
        kernel,
        few,
        lambda: pairs(lambda s, t: subsequence(s, t, 4, 0.5)),
    )
    kernel = StringKernel("alignment", beta=0.5, **raw)
    compare("alignment, 24 of 100", kernel, few, lambda: pairs(lambda s, t: alignment(s, t, 0.5)))
    print("\n| spectrum, k = 6, 4 strings of | ms | ns per character |")
    print("|---|---|---|")
    for length in (10_000, 100_000, 1_000_000):
        texts = strings(4, length, "acgt")
        kernel = StringKernel(length=6)
        spent = seconds(lambda texts=texts, kernel=kernel: kernel(texts))
        print(f"| {length} | {1e3 * spent:.1f} | {1e9 * spent / (4 * length):.0f} |")


if __name__ == "__main__":
    main()
