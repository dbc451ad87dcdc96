"""Runs one Python peer on one problem in this process and prints what it cost as JSON.

`python peer_run.py PEER PROBLEM THREADS REPEATS [SOLUTION.npz]`. A fresh process per call: thread
counts are fixed before any library is imported, and nothing is warm from another peer. Peers:
sklearn, sklearn-csr (f64, dense or sparse rows), sklearnex (f32), sklearnex-csr, sklearnex-f64,
libsvm (libsvm-official).
"""

import json
import os
import sys
import time

peer, name, threads, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
solution = sys.argv[5] if len(sys.argv) > 5 else None
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TBB_NUM_THREADS"):
    os.environ[variable] = str(threads)

import numpy as np  # noqa: E402

from memory import peak_memory_mb  # noqa: E402
from problems import problem as open_problem  # noqa: E402

problem = open_problem(name)
family, _, variant = peer.partition("-")
kind = {
    ("sklearn", ""): "f64",
    ("sklearn", "csr"): "csr64",
    ("sklearnex", ""): "f32",
    ("sklearnex", "csr"): "csr32",
    ("sklearnex", "f64"): "f64",
    ("libsvm", ""): "csr64",
}[family, variant]
x, y = problem.rows("train", kind), problem.labels("train")
x_test, y_test = problem.rows("test", kind), problem.labels("test")


class Scikit:
    """scikit-learn's SVC or its replacement by scikit-learn-intelex."""

    def __init__(self):
        if family == "sklearnex":
            import daal4py

            daal4py.daalinit(threads)
            from sklearnex.svm import SVC
        else:
            from sklearn.svm import SVC
        self.make = lambda: SVC(
            C=problem.c, gamma=problem.gamma, tol=1e-3, cache_size=problem.cache_mb
        )

    def fit(self):
        self.machine = self.make().fit(x, y)

    def predict(self):
        return self.machine.predict(x_test)

    def arrays(self):
        coefficients = self.machine.dual_coef_
        if hasattr(coefficients, "toarray"):
            coefficients = coefficients.toarray()
        return self.machine.support_, coefficients, self.machine.n_support_


class Libsvm:
    """LIBSVM itself through its own Python binding."""

    def __init__(self):
        from libsvm import svm, svmutil

        svm.svm_node  # fail here, before the clock, if the library is missing
        self.util = svmutil
        self.options = svmutil.svm_parameter(
            f"-q -s 0 -t 2 -c {problem.c} -g {problem.gamma!r} -e 0.001 -m {problem.cache_mb}"
        )
        self.data = svm.svm_problem(y, x)

    def fit(self):
        self.machine = self.util.svm_train(self.data, self.options)

    def predict(self):
        return np.array(self.util.svm_predict(y_test, x_test, self.machine, "-q")[0])

    def arrays(self):
        labels = self.machine.get_labels()
        counts = [self.machine.nSV[k] for k in range(len(labels))]
        return (
            np.array(self.machine.get_sv_indices()) - 1,
            np.array(self.machine.get_sv_coef()).T,
            counts,
        )


machine = Libsvm() if family == "libsvm" else Scikit()
runs = []
for _ in range(repeats):
    wall, cpu = time.perf_counter(), time.process_time()
    machine.fit()
    fit_wall, fit_cpu = time.perf_counter() - wall, time.process_time() - cpu
    wall, cpu = time.perf_counter(), time.process_time()
    predicted = machine.predict()
    runs.append(
        {
            "fit_cpu": fit_cpu,
            "fit_wall": fit_wall,
            "predict_cpu": time.process_time() - cpu,
            "predict_wall": time.perf_counter() - wall,
        }
    )
best = {key: min(run[key] for run in runs) for key in runs[0]}
support, coefficients, per_class = machine.arrays()
best |= {
    "support_vectors": int(len(support)),
    "accuracy": float(np.mean(np.asarray(predicted) == y_test)),
    "peak_rss_mb": peak_memory_mb(),
}
if solution:
    np.savez(solution, support=support, coefficients=coefficients, per_class=per_class)
print(json.dumps(best))
