#!/usr/bin/env bash
# Three sites on one machine, a process and a file each, as in three terminals; the rows of the files are
# Fisher's irises. Usage: examples/three_sites.sh [path of widemargin]
set -euo pipefail
widemargin=$(realpath "${1:-target/release/widemargin}")
irises=$(realpath "$(dirname "$0")/../data/iris.csv")
cd "$(mktemp -d)"
for site in 0 1 2; do
  awk -v site=$site 'NR == 1 || NR % 3 == site' "$irises" > "site-$site.csv"
done

# Terminal 1 leads and writes the model.
"$widemargin" train site-0.csv --sites 3 --listen 127.0.0.1:7314 --c 10 --gamma 0.1 -o all.wm &
leader=$!
# Terminals 2 and 3.
"$widemargin" site site-1.csv --connect 127.0.0.1:7314 &
"$widemargin" site site-2.csv --connect 127.0.0.1:7314
wait "$leader"
"$widemargin" predict "$irises" --model all.wm -o predictions.txt
echo "model and predictions are in $PWD"
