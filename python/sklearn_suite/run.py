"""Runs scikit-learn's own tests of its SVM module against our estimators.

The tests are those of the installed scikit-learn; nothing of them is copied. Before pytest imports
them, the classes of `sklearn.svm` are replaced by ours. Tests that cannot apply are deselected;
each is named in `docs/scikit-learn-suite.md` with its reason, and a name there that scikit-learn no
longer has is an error.

    python python/sklearn_suite/run.py [pytest options]
"""

import re
import sys
from pathlib import Path

import pytest
import sklearn.svm

import widemargin

SUBSTITUTED = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR")
MODULES = ("sklearn.svm.tests.test_svm", "sklearn.svm.tests.test_sparse")
CONFIG = Path(__file__).with_name("pytest.ini")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "scikit-learn-suite.md"


#: What the tests of the page's second table get in the place of the default 1e-3.
TIGHT = 1e-8


def listed(heading):
    """Return the tests in the page's table under a heading, as `file::name`."""
    _, _, rest = PAGE.read_text().partition(f"## {heading}\n")
    table = rest.partition("\n## ")[0]
    return set(re.findall(r"^\| `(test_\w+\.py::test_\w+)` \|", table, re.MULTILINE))


class Substitute:
    """Leaves out the tests of the page's first table, tightens `tol` for those of the second."""

    def __init__(self):
        self.left_out = listed("Left out")
        self.tightened = listed("Run with a tighter tolerance")
        self.listed = self.left_out | self.tightened
        self.used = set()

    def name(self, item):
        """Return a test's name as the page writes it."""
        return f"{item.path.name}::{item.originalname}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        """Change the default tolerance around a listed test."""
        constructors = [getattr(widemargin, name).__init__ for name in SUBSTITUTED]
        defaults = [constructor.__kwdefaults__ for constructor in constructors]
        before = [default["tol"] for default in defaults]
        if self.name(item) in self.tightened:
            for default in defaults:
                default["tol"] = TIGHT
        try:
            return (yield)
        finally:
            for default, tol in zip(defaults, before, strict=True):
                default["tol"] = tol

    def pytest_collection_modifyitems(self, config, items):
        """Leave out the listed tests."""
        kept, left_out = [], []
        for item in items:
            name = self.name(item)
            self.used |= {name} & self.listed
            (left_out if name in self.left_out else kept).append(item)
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def main(arguments):
    """Run the suite and return pytest's exit code."""
    for name in SUBSTITUTED:
        setattr(sklearn.svm, name, getattr(widemargin, name))
    plugin = Substitute()
    options = ["--pyargs", *MODULES, "-p", "no:cacheprovider", "-q", "-c", str(CONFIG), *arguments]
    code = pytest.main(options, plugins=[plugin])
    unknown = plugin.listed - plugin.used
    if unknown and not arguments:
        print(f"{PAGE.name} lists tests that scikit-learn does not have: {sorted(unknown)}")
        return 1
    print(f"{len(plugin.left_out)} tests left out, listed in {PAGE.name}")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
