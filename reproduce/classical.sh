#!/bin/sh
# Figures 1 to 4, 6 and 7 of JHU 685.621 (decision boundaries of seven classifiers in the plane) and the
# errors of each. The notes give neither data nor parameters; Ripley's synthetic two-class data takes their
# place. Writes the pictures into a folder (default: classical-figures); under a minute.
# What came out is in reproduce/classical.md.
set -e
folder=${1:-classical-figures}
cd "$(dirname "$0")/.."
cargo build --release --locked -p widemargin-cli
mkdir -p "$folder"

figure() {
    name=$1
    shift
    target/release/widemargin train data/ripley-train.csv --machine "$@" -o "$folder/$name.wm" -q
    echo "$name ($*)"
    target/release/widemargin predict data/ripley-test.csv --model "$folder/$name.wm" -o /dev/null | grep -i accuracy
    target/release/widemargin plot regions data/ripley-train.csv --model "$folder/$name.wm" \
        --title "$* on Ripley's data (in the place of the notes')" -o "$folder/$name.svg" -q
}

figure fisher fisher --threshold midpoint
figure 1-em-bayes gmm-bayes --components 2 --starts 10
figure 2-neighbours knn --neighbours 15
figure 3-kernel-fisher kernel-fisher --gamma 5.5556 --mu 1e-2
figure 4-parzen parzen --width 0.25
figure 6-pnn pnn --input lifted --width 0.15
figure 6-pnn-unit-norm pnn --input unit-norm --width 0.2
figure 7-svm c-svc --gamma 2 -c 1
