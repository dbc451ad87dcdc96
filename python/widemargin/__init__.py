"""Support vector machines with scikit-learn's interface, fast and exact.

>>> from widemargin import SVC

and the rest of a program that used :class:`sklearn.svm.SVC` stays as it is.
"""

from widemargin._core import __version__
from widemargin._files import load
from widemargin._multiclass import MulticlassSVC, OnlineSVC
from widemargin._novelty import SVDD, OneClassSVM
from widemargin._progress import History, Progress
from widemargin._svc import SVC, NuSVC
from widemargin._svr import SVR, NuSVR

__all__ = [
    "SVC",
    "SVDD",
    "SVR",
    "History",
    "MulticlassSVC",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OnlineSVC",
    "Progress",
    "__version__",
    "load",
]
