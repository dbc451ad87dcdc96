"""Choose C and γ by cross-validation, look at the result, save it for the command line."""

import tempfile
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.metrics import classification_report
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import widemargin
from widemargin import SVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

pipeline = make_pipeline(StandardScaler(), SVC())
search = GridSearchCV(pipeline, {"svc__C": [1, 10], "svc__gamma": ["scale", 0.005]}, cv=3)
search.fit(X_train, y_train)
print("best:", search.best_params_)
print(classification_report(y_test, search.predict(X_test)))

model = search.best_estimator_[-1]
print(f"{len(model.support_)} support vectors, {model.status_}, gap {model.dual_gap_:.2g}")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "digits.wm"
    model.save(path)  # `widemargin inspect digits.wm` reads it
    again = widemargin.load(path)
    scaled = search.best_estimator_[0].transform(X_test)
    assert (again.predict(scaled) == search.predict(X_test)).all()
