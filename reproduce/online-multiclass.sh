#!/bin/sh
# Tables 4.3, 5.2 and 5.3 of Trinh (2012), as far as their data is public: the optima of LETTER and USPS,
# one online pass over both by several strategies beside the batch machine, and linear machines on text in
# the place of INEX. Needs WIDEMARGIN_DATA; about ten minutes. MNIST (`python3 bench/multiclass.py mnist`)
# takes longer.
# What came out is in bench/multiclass.md.
set -e
cd "$(dirname "$0")/.."
cargo build --release --locked -p widemargin-cli
python3 bench/multiclass.py letter usps online text
