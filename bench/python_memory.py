"""Peak memory that `SVC.fit` adds to an array already in memory; prints JSON.

`python python_memory.py LAYOUT`; LAYOUT is c32, c64 (C order, read in place) or f32 (Fortran order,
which has to be copied). A fresh process per call; a short training with a small cache, so that the
array and the packed rows are what matters.
"""

import json
import sys
import warnings

import numpy as np

from widemargin import SVC

ROWS, COLUMNS = 60_000, 784


def status(field):
    """A line of /proc/self/status in MB."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


layout = sys.argv[1]
dtype = np.float64 if layout.endswith("64") else np.float32
rng = np.random.default_rng(0)
x = np.empty((ROWS, COLUMNS), dtype, order="F" if layout == "f32" else "C")
for start in range(0, ROWS, 1000):
    x[start : start + 1000] = rng.random((1000, COLUMNS), np.float32)
y = (x[:, 0] > 0.5).astype(int)
warnings.simplefilter("ignore")
SVC().fit(x[:50], y[:50])  # whatever the first training loads
with open("/proc/self/clear_refs", "w") as control:
    control.write("5")  # the peak starts again here
before = status("VmRSS")
SVC(gamma=0.02, max_iter=200, cache_size=20, precision="single").fit(x, y)
print(
    json.dumps(
        {
            "layout": layout,
            "array_mb": x.nbytes / 2**20,
            "added_mb": status("VmHWM") - before,
        }
    )
)
