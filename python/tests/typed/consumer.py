"""How a typed program sees the package; checked by mypy, never run."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import widemargin
from widemargin import SVC, SVR, History, OneClassSVM, Progress
from widemargin.plot import MarginDisplay

X: NDArray[np.float32] = np.zeros((4, 2), dtype=np.float32)
y: NDArray[np.int64] = np.array([0, 1, 0, 1])

model = SVC(C=10, kernel="rbf", gamma="scale", n_jobs=-1).fit(X, y)
assert_type(model, SVC)
assert_type(model.predict(X), NDArray[Any])
assert_type(model.decision_function(X), NDArray[np.float64])
assert_type(model.status_, str)
assert_type(model.dual_gap_, float)
assert_type(model.to_libsvm(), str)
assert_type(model.n_support_, NDArray[np.int32])
model.save(Path("model.wm"))

assert_type(SVR(epsilon=0.5).fit(X, y).predict(X), NDArray[np.float64])
assert_type(OneClassSVM().fit(X).predict(X), NDArray[np.intp])
assert_type(History().steps, list[Progress])
assert_type(MarginDisplay.from_estimator(model, X, y), MarginDisplay)
assert_type(widemargin.__version__, str)


def watch(progress: Progress) -> bool:
    """Stop once the violation is small."""
    return progress.violation < 0.1


SVC(callbacks=watch)
