"""Writes a large sparse two-class problem as LIBSVM text, the same for a seed.

    python bench/big_sparse.py FILE [--gigabytes 5] [--seed 0]

Rows have about 80 of 200 000 features, frequent ones more often; the label is the side of a hidden
hyperplane, wrong for one row in twenty.
"""

import argparse
from pathlib import Path

import numpy as np

FEATURES = 200_000
PER_ROW = 80
BATCH = 20_000
#: Bytes of an index and a value.
TOKEN = 12


def main():
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    hidden = random.standard_normal(FEATURES + PER_ROW)
    written, goal = 0, options.gigabytes * 1e9
    with options.file.open("wb") as out:
        while written < goal:
            columns = (FEATURES * random.random((BATCH, PER_ROW)) ** 3).astype(np.int64)
            columns.sort(axis=1)
            # Sorted numbers plus 0, 1, 2, ... ascend strictly.
            columns += np.arange(PER_ROW)
            values = random.integers(1, 100, (BATCH, PER_ROW))
            scores = (hidden[columns] * values).sum(axis=1)
            sides = (scores > 0) ^ (random.random(BATCH) < 0.05)
            lines = np.empty((BATCH, 2 + PER_ROW * TOKEN + 1), np.uint8)
            lines[:, 0] = np.where(sides, ord("+"), ord("-"))
            lines[:, 1] = ord("1")
            lines[:, -1] = ord("\n")
            tokens = lines[:, 2:-1].reshape(BATCH, PER_ROW, TOKEN)
            tokens[:] = np.frombuffer(b" 000000:0.00", np.uint8)
            for place in range(6):
                tokens[:, :, 6 - place] += ((columns + 1) // 10**place % 10).astype(np.uint8)
            tokens[:, :, 10] += (values // 10).astype(np.uint8)
            tokens[:, :, 11] += (values % 10).astype(np.uint8)
            out.write(lines.tobytes())
            written += lines.size


if __name__ == "__main__":
    main()
