"""Find rows unlike those seen in training, with a half-space and with a ball."""

import numpy as np

from widemargin import SVDD, OneClassSVM

rng = np.random.default_rng(0)
usual = rng.normal(size=(500, 2))
strange = rng.uniform(4, 6, size=(20, 2))

for detector in (OneClassSVM(nu=0.05, gamma=0.1), SVDD(nu=0.05, kernel="linear")):
    detector.fit(usual)
    print(
        f"{type(detector).__name__:12} {np.mean(detector.predict(usual) == -1):.1%} of the usual "
        f"rows and {np.mean(detector.predict(strange) == -1):.0%} of the strange ones are outside"
    )
