"""Least-squares machines: `LSSVC` and `LSSVR`."""

from __future__ import annotations

from typing import Any, ClassVar

from widemargin._docs import documented
from widemargin._parameters import constraints
from widemargin._svr import BaseSVR
