#!/bin/sh
# Tables 4.2, 4.3 and the random working sets of Lu (2005), the thesis's numbers beside ours, on synthetic
# data; less than a minute. What came out is in reproduce/distributed.md.
set -e
cd "$(dirname "$0")/.."
cargo build --release --locked -p widemargin-cli
python3 reproduce/distributed.py
