#!/bin/sh
# Tables 3.2, 3.3 and 3.4 of Nguyen (2006), the document's numbers beside ours. Needs WIDEMARGIN_DATA;
# an hour or so of processor time, half of it for MNIST. What came out is in reproduce/compression.md.
set -e
cd "$(dirname "$0")/.."
cargo build --release --locked -p widemargin-cli
python3 reproduce/compression.py "$@"
