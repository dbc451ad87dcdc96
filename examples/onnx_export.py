"""Hand a trained classifier to a program without Python: every output as one ONNX graph."""

import warnings

import numpy as np
import onnxruntime
from sklearn.datasets import load_wine

from widemargin import SVC

X, y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # scikit-learn 1.9 deprecates `probability`
    model = SVC(probability=True, random_state=0).fit(X, y)

content = model.to_onnx().SerializeToString()
session = onnxruntime.InferenceSession(content)
names = [output.name for output in session.get_outputs()]
print(f"{len(content)} bytes; outputs: {', '.join(names)}")
labels, probabilities = session.run(["predict", "predict_proba"], {"X": X})
assert (labels == model.predict(X)).all()
print("largest difference:", np.abs(probabilities - model.predict_proba(X)).max())
