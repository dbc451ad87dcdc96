#!/usr/bin/env bash
# What `make demo` shows: two real data sets, two models, two pictures, all in demo/.
set -euo pipefail
cd "$(dirname "$0")/.."
widemargin=${WIDEMARGIN:-target/release/widemargin}
mkdir -p demo

run() {
  printf '\n$ widemargin %s\n' "$*"
  "$widemargin" "$@"
}

echo "Handwritten digits (data/digits.libsvm.xz): 1797 images of 8 × 8 pixels, 10 classes."
echo "Every fourth image is kept for testing."
"$widemargin" convert data/digits.libsvm.xz -o demo/digits.all.txt
awk 'NR % 4 == 0 { print > "demo/digits.test.txt"; next } { print > "demo/digits.train.txt" }' \
  demo/digits.all.txt
rm demo/digits.all.txt
run train demo/digits.train.txt --kernel rbf --gamma 0.001 --c 10 \
  --test demo/digits.test.txt -o demo/digits.wm
run plot confusion demo/digits.test.txt --model demo/digits.wm --output demo/digits-confusion.svg

echo
echo "Iris flowers (data/iris.csv): three species by the size of their petals."
run train data/iris.csv --ignore-column sepal_length --ignore-column sepal_width --gamma 0.5 \
  --c 10 -o demo/iris.wm
run plot regions data/iris.csv --ignore-column sepal_length --ignore-column sepal_width \
  --model demo/iris.wm --support --output demo/iris-regions.svg

printf '\nModels:   demo/digits.wm demo/iris.wm\n'
printf 'Pictures: demo/digits-confusion.svg demo/iris-regions.svg (open them in a browser)\n'
