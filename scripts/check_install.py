"""Trains, saves, loads and predicts with the installed package, whichever way it was installed."""

import tempfile
from pathlib import Path

import numpy as np

import widemargin

rows = np.array([[-2.0, 0.0], [-1.0, 1.0], [1.0, 0.0], [2.0, 1.0]])
labels = np.array(["left", "left", "right", "right"])
model = widemargin.SVC(kernel="linear").fit(rows, labels)
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.wm"
    model.save(path)
    again = widemargin.load(path)
if again.predict(rows).tolist() != labels.tolist():
    raise SystemExit("the loaded model predicts other labels than it was trained on")
print(f"widemargin installed in {Path(widemargin.__file__).parent}")
