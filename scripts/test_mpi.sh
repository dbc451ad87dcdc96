#!/usr/bin/env bash
# Builds widemargin-mpi and checks it: the optimum of one place, an error within seconds where a process is
# killed, and a next run that goes on from the checkpoint. Skipped where MPI is not installed (Debian: mpich
# libmpich-dev libclang-dev clang).
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in mpirun mpicc clang; do
  if ! command -v "$tool" > /dev/null; then
    echo "test_mpi: skipped, $tool is not installed"
    exit 0
  fi
done

export CARGO_TARGET_DIR="$PWD/target"
cargo build --quiet --locked -p widemargin-cli
(cd crates/mpi && cargo clippy --quiet --locked -- -D warnings && cargo build --quiet --locked)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run=(mpirun -n 4)
if mpirun --version 2>&1 | grep -q 'Open MPI'; then
  run=(mpirun --allow-run-as-root --oversubscribe -n 4)
fi
run+=("$CARGO_TARGET_DIR/debug/widemargin-mpi" train)
one=("$CARGO_TARGET_DIR/debug/widemargin" train --quiet --json -o "$folder/one.wm")

# The objectives of one place and of four processes.
same() {
  local alone together
  alone=$(sed -n 's/^ *"primal": \([^,]*\),\?$/\1/p' "$folder/one.json" | head -n 1)
  together=$(sed -n 's/.*objective \([^,]*\), verified.*/\1/p' "$folder/four.txt")
  echo "$1: $alone at one place, $together by four processes"
  awk -v a="$alone" -v b="$together" 'BEGIN { exit !(b != "" && (a - b) ^ 2 <= (1e-5 * a) ^ 2) }'
}

exact=(--set tol=1e-6 --set precision=f64)
"${one[@]}" data/wine.csv --tol 1e-6 --precision f64 > "$folder/one.json"
"${run[@]}" data/wine.csv "${exact[@]}" -o "$folder/four.wm" > "$folder/four.txt"
same "c-svc"
"${one[@]}" data/wine.csv --linear --loss logistic --solver newton --tol 1e-6 --gap 1e-7 \
  > "$folder/one.json"
"${run[@]}" data/wine.csv --machine logistic --set tol=1e-6 --set gap=1e-7 \
  -o "$folder/four.wm" > "$folder/four.txt"
same "logistic"

# Two overlapping classes that take a while.
awk 'BEGIN { OFS = ","; srand(1); print "x,y,class"; for (i = 0; i < 6000; i++) {
  c = i % 2; print c + rand() + rand() - 1, rand() + rand(), c } }' > "$folder/large.csv"
slow=("$folder/large.csv" --set c=1000 --set gamma=2 --set tol=1e-8 --set precision=f64)
slow+=(--checkpoint "$folder/state" -o "$folder/large.wm")
"${run[@]}" "${slow[@]}" > "$folder/errors" 2>&1 &
job=$!
until compgen -G "$folder/state/*.checkpoint" > /dev/null; do
  if ! kill -0 "$job" 2> /dev/null; then
    cat "$folder/errors"
    echo "the job ended before it had a checkpoint to kill it at"
    exit 1
  fi
  sleep 0.1
done

# The processes of the job: children of mpirun, or of a helper of it.
ranks() {
  local child
  for child in $(pgrep -P "$1"); do
    if [ "$(cat "/proc/$child/comm" 2> /dev/null)" = widemargin-mpi ]; then
      echo "$child"
    else
      ranks "$child"
    fi
  done
}

kill -KILL "$(ranks "$job" | tail -n 1)"
start=$SECONDS
if wait "$job"; then
  echo "a job with a killed process was no error"
  exit 1
fi
if [ $((SECONDS - start)) -gt 10 ]; then
  echo "the job went on for more than 10 s without its process"
  exit 1
fi
if ! message=$(grep -i -m 1 'kill\|terminat\|abort' "$folder/errors"); then
  cat "$folder/errors"
  echo "nothing said that a process was killed"
  exit 1
fi
echo "killed, the job ended $((SECONDS - start)) s later: $message"
kept=$(find "$folder/state" -name '*.checkpoint' | wc -l)
"${run[@]}" "${slow[@]}" | tee "$folder/four.txt"
grep -q ', verified;' "$folder/four.txt"
echo "went on from $kept checkpoints"
if compgen -G "$folder/state/*.checkpoint" > /dev/null; then
  echo "a finished training left its checkpoints"
  exit 1
fi
if "${run[@]}" "$folder/not-there.csv" -o "$folder/none.wm" 2> "$folder/errors"; then
  echo "a file that is not there was no error"
  exit 1
fi
grep -q 'not-there.csv' "$folder/errors"
echo "test_mpi: passed"
