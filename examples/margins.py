"""Draw decision regions, margins, support vectors and convergence; writes margins.png."""

import sys

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from widemargin import SVC
from widemargin.plot import ConfusionMatrixDisplay, ConvergenceDisplay, MarginDisplay

X, y = load_iris(return_X_y=True, as_frame=True)
X = X.iloc[:, :2]
figure, axes = plt.subplots(2, 2, figsize=(11, 9), layout="constrained")

two = SVC(kernel="linear", C=10).fit(X[y < 2], y[y < 2])
MarginDisplay.from_estimator(two, X[y < 2], y[y < 2], ax=axes[0, 0])
three = SVC(C=10, gamma=1).fit(X, y)
MarginDisplay.from_estimator(three, X, y, ax=axes[0, 1])
ConvergenceDisplay.from_estimator(three, X, y, ax=axes[1, 0])
ConfusionMatrixDisplay.from_estimator(three, X, y, ax=axes[1, 1])

path = sys.argv[1] if len(sys.argv) > 1 else "margins.png"
figure.savefig(path)
print("wrote", path)
