"""The problems every program of the comparison solves, built once from WIDEMARGIN_DATA.

`python problems.py [NAME ...]` writes bench/.cache/NAME/ with the rows as f32 and f64 `.npy`, the
labels, and LIBSVM text; `problem(NAME)` opens it, building it when it is missing. WIDEMARGIN_DATA
is a folder of data sets, one sub-folder each, holding LIBSVM text (`.libsvm.xz`) or IDX files.
"""

import gzip
import lzma
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

CACHE = Path(__file__).resolve().parent / ".cache"


@dataclass(frozen=True)
class Problem:
    """One training problem: its folder, the machine's parameters and the cache all may use."""

    name: str
    title: str
    c: float
    gamma: float
    sparse: bool = False
    cache_mb: int = 1000

    @property
    def folder(self) -> Path:
        return CACHE / self.name

    def file(self, part: str, kind: str) -> Path:
        """`part` is train or test; `kind` is f32.npy, f64.npy, labels.npy, csr.npz or libsvm."""
        return self.folder / f"{part}.{kind}"

    def rows(self, part: str, kind: str):
        """The rows as f32 or f64, dense or (`csr32`, `csr64`) compressed sparse."""
        if kind.startswith("csr"):
            dtype = np.float32 if kind == "csr32" else np.float64
            return sparse.load_npz(self.file(part, "csr.npz")).astype(dtype)
        return np.load(self.file(part, f"{kind}.npy"))

    def labels(self, part: str) -> np.ndarray:
        return np.load(self.file(part, "labels.npy"))


def data_folder() -> Path:
    folder = os.environ.get("WIDEMARGIN_DATA")
    if not folder or not Path(folder).is_dir():
        sys.exit("skipped: set WIDEMARGIN_DATA to a folder of data sets (see bench/README.md)")
    return Path(folder)


def read_libsvm(path: Path, features: int | None = None):
    """Rows (CSR, f64) and labels of a `.libsvm` or `.libsvm.xz` file."""
    from sklearn.datasets import load_svmlight_file

    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rb") as handle:
        return load_svmlight_file(handle, n_features=features, zero_based=False)


def read_idx(path: Path) -> np.ndarray:
    with gzip.open(path, "rb") as handle:
        raw = handle.read()
    dimensions = raw[3]
    shape = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(dimensions)]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def digits(_folder):
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x / 16.0, y, random_state=0)
    return x_train, y_train, x_test, y_test


def synthetic(rows: int):
    """The dense set: the first 20 000 of 25 000 train, the rest test; larger n from the same law."""

    def build(_folder):
        from sklearn.datasets import make_classification

        total = 25000 if rows <= 20000 else rows + 5000
        x, y = make_classification(
            total,
            20,
            n_informative=10,
            n_redundant=2,
            n_clusters_per_class=4,
            class_sep=0.8,
            flip_y=0.03,
            random_state=0,
        )
        x = (x - x.mean(0)) / x.std(0)
        return x[:rows], y[:rows], x[-5000:], y[-5000:]

    return build


def letter(folder):
    """Features, all counts from 0 to 15, scaled to [-1, 1]."""
    train, y_train = read_libsvm(folder / "letter/letter.train.libsvm.xz", 16)
    test, y_test = read_libsvm(folder / "letter/letter.test.libsvm.xz", 16)
    return train.toarray() / 7.5 - 1, y_train, test.toarray() / 7.5 - 1, y_test


def a9a(folder):
    train, y_train = read_libsvm(folder / "a9a/a9a.train.libsvm.xz", 123)
    test, y_test = read_libsvm(folder / "a9a/a9a.test.libsvm.xz", 123)
    return train.toarray(), y_train, test.toarray(), y_test


def mnist(rows: int, test_rows: int, even_odd: bool = False):
    """Pixels in [0, 1]; the first `rows` of the training file, the first `test_rows` of the test."""

    def build(folder):
        part = lambda name: read_idx(folder / "mnist" / f"{name}.gz")
        x_train = part("train-images-idx3-ubyte")[:rows].reshape(-1, 784) / 255.0
        x_test = part("t10k-images-idx3-ubyte")[:test_rows].reshape(-1, 784) / 255.0
        y_train = part("train-labels-idx1-ubyte")[:rows]
        y_test = part("t10k-labels-idx1-ubyte")[:test_rows]
        if even_odd:
            y_train, y_test = y_train % 2, y_test % 2
        return x_train, y_train, x_test, y_test

    return build


_TABLE = [
    (Problem("digits", "digits 1 347 × 64, 10 classes", 10, 0.25), digits),
    (Problem("synth20k", "dense 20 000 × 20", 1, 0.05), synthetic(20000)),
    (Problem("letter", "letter 15 000 × 16, 26 classes", 16, 4), letter),
    (Problem("a9a", "a9a 32 561 × 123 (11 % dense)", 1, 1 / 32, sparse=True), a9a),
    (Problem("mnist10k", "MNIST 10 000 × 784, 10 classes", 10, 0.02), mnist(10000, 2000)),
    (Problem("mnist10k_eo", "MNIST 10 000 × 784, even/odd", 10, 0.02), mnist(10000, 2000, True)),
    (
        Problem("mnist60k", "MNIST 60 000 × 784, 10 classes", 10, 0.02, cache_mb=2000),
        mnist(60000, 10000),
    ),
]
SCALING_ROWS = (5000, 10000, 20000, 40000, 80000)
_TABLE += [
    (Problem(f"scaling{n // 1000}k", f"dense {n} × 20", 1, 0.05), synthetic(n))
    for n in SCALING_ROWS
]
PROBLEMS = {problem.name: problem for problem, _ in _TABLE}
_BUILDERS = {problem.name: build for problem, build in _TABLE}


def write(problem: Problem) -> None:
    """Builds the problem's folder; the labels file is written last and marks it complete."""
    from sklearn.datasets import dump_svmlight_file

    x_train, y_train, x_test, y_test = _BUILDERS[problem.name](data_folder())
    problem.folder.mkdir(parents=True, exist_ok=True)
    for part, x, y in (("train", x_train, y_train), ("test", x_test, y_test)):
        y = np.asarray(y).astype(np.int64)
        np.save(problem.file(part, "f32.npy"), np.ascontiguousarray(x, np.float32))
        np.save(problem.file(part, "f64.npy"), np.ascontiguousarray(x, np.float64))
        sparse.save_npz(problem.file(part, "csr.npz"), sparse.csr_matrix(x), compressed=False)
        with open(problem.file(part, "libsvm"), "wb") as handle:
            dump_svmlight_file(x, y, handle, zero_based=False)
        np.save(problem.file(part, "labels.npy"), y)


def problem(name: str) -> Problem:
    """The named problem with its files in place."""
    found = PROBLEMS[name]
    if not found.file("test", "labels.npy").exists():
        print(f"building {name}", file=sys.stderr)
        write(found)
    return found


if __name__ == "__main__":
    for requested in sys.argv[1:] or PROBLEMS:
        problem(requested)
