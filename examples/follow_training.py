"""Watch a training, stop it after a while, go on from there."""

import warnings

from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from widemargin import SVC, History

X, y = make_classification(5000, 20, n_informative=8, flip_y=0.1, random_state=0)
X = X.astype("float32")  # half the memory, twice the speed

history = History()
model = SVC(C=50, gamma=0.1, callbacks=[history], max_time=0.05, warm_start=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    model.fit(X, y)
print(f"after 0.05 s: {model.status_}, violation {model.violation_:.3g}")

model.set_params(max_time=None, n_jobs=2).fit(X, y)
print(f"in the end:   {model.status_}, violation {model.violation_:.3g}")
print(f"{len(history.steps)} steps were reported, the last: {history.steps[-1]}")
