#!/usr/bin/env bash
# Installs the peers of the comparisons: Python ones into bench/.venv, the Rust one into
# bench/peers-rs/target. Nothing outside those two folders is touched.
set -euo pipefail
cd "$(dirname "$0")"
[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check -r requirements.txt
(cd peers-rs && cargo build --quiet --release --locked)
.venv/bin/python -c '
import sklearn, sklearnex, libsvm.svm, numpy
print("peers ready: scikit-learn", sklearn.__version__, "numpy", numpy.__version__)' 2>/dev/null
command -v svm-train >/dev/null ||
  echo "note: LIBSVM's own programs are missing (Debian: apt-get install libsvm-tools);" \
       "bench/dropin.sh needs them"
