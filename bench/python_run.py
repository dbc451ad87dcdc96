"""Trains and predicts once from Python in this process and prints what it cost as JSON.

`python python_run.py PROBLEM THREADS REPEATS [KIND]`; KIND is f32 (default), f64, csr32 or csr64.
Beside the times of `fit` and `predict` it tells how much of them was spent inside the compiled half:
the rest is what Python costs.
"""

import json
import os
import sys
import time

name, threads, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(threads)

import numpy as np  # noqa: E402

from memory import peak_memory_mb  # noqa: E402
from problems import problem as open_problem  # noqa: E402
from widemargin import SVC  # noqa: E402

problem = open_problem(name)
kind = sys.argv[4] if len(sys.argv) > 4 else ("csr32" if problem.sparse else "f32")
x, y = problem.rows("train", kind), problem.labels("train")
x_test, y_test = problem.rows("test", kind), problem.labels("test")

SVC().fit(x[:50], y[:50])  # whatever the first training loads
runs = []
for _ in range(repeats):
    machine = SVC(C=problem.c, gamma=problem.gamma, cache_size=problem.cache_mb, n_jobs=threads)
    wall, cpu = time.perf_counter(), time.process_time()
    machine.fit(x, y)
    fit_wall, fit_cpu = time.perf_counter() - wall, time.process_time() - cpu
    wall, cpu = time.perf_counter(), time.process_time()
    predicted = machine.predict(x_test)
    predict_wall, predict_cpu = time.perf_counter() - wall, time.process_time() - cpu
    # The second prediction finds the support vectors packed.
    wall = time.perf_counter()
    machine.predict(x_test)
    again_wall = time.perf_counter() - wall
    runs.append(
        {
            "fit_cpu": fit_cpu,
            "fit_wall": fit_wall,
            "inside": machine._model.training["seconds"],
            "outside": fit_wall - machine._model.training["seconds"],
            "predict_cpu": predict_cpu,
            "predict_wall": predict_wall,
            "again_wall": again_wall,
        }
    )
best = {key: min(run[key] for run in runs) for key in runs[0]}
print(
    json.dumps(
        best
        | {
            "support_vectors": len(machine.support_),
            "accuracy": float(np.mean(predicted == y_test)),
            "dual": machine.objective_,
            "status": machine.status_,
            "peak_rss_mb": peak_memory_mb(),
        }
    )
)
