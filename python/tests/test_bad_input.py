"""Every row of the table of bad inputs gets the exception and the message it promises."""

import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import widemargin
from widemargin import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python-errors.md"
ROW = re.compile(r"^\| `(?P<code>.+)` \| `(?P<error>\w+)` \| (?P<message>.+) \|$", re.MULTILINE)
CASES = [match.groupdict() for match in ROW.finditer(PAGE.read_text())]

X, y = load_iris(return_X_y=True)
NAMES = {
    "np": np,
    "pd": pd,
    "sp": sp,
    "widemargin": widemargin,
    "SVC": SVC,
    "NuSVC": NuSVC,
    "SVR": SVR,
    "NuSVR": NuSVR,
    "OneClassSVM": OneClassSVM,
    "SVDD": SVDD,
    "X": X,
    "y": y,
    "nan": np.where(np.arange(X.size).reshape(X.shape) == 5, np.nan, X),
    "model": SVC().fit(X, y),
    "frame": pd.DataFrame(X, columns=list("abcd")),
}


def test_the_table_is_long_enough():
    assert len(CASES) >= 40


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["code"])
def test_message(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(Exception) as caught:
            eval(case["code"], dict(NAMES))
    assert type(caught.value).__name__ == case["error"]
    promised = case["message"].replace("\\|", "|")
    found = " ".join(str(caught.value).split())
    if promised.endswith("…"):
        assert found.startswith(promised[:-1]), found
    else:
        assert found == promised, found
