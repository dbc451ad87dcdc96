#!/bin/sh
# Tables 2.2 and 3.2 and figures 3.8 to 3.12 of Lu, Kernel Optimization and Distributed Learning Algorithms (UCLA, 2005), on
# recordings of the generator in examples/retina (the recordings of the thesis are private): the published numbers stand
# beside ours in reproduce/retina.md.
#
#     reproduce/retina.sh [FOLDER]      figures are drawn into FOLDER
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
figures=${1:-retina-figures}
for seed in 0 1 2 3; do
    printf '\n## Which cell fired (table 2.2), seed %s\n\n' $seed
    "$python" examples/retina/retina.py identify --seed $seed -o "$figures/$seed"
done
printf '\n## Which cell fired, the other filters\n\n'
"$python" examples/retina/retina.py identify --filters other
printf '\n## Which cells are linear (table 3.2)\n\n'
"$python" examples/retina/retina.py linear
printf '\n## Filters and their drift (figures 3.8 to 3.12)\n\n'
"$python" examples/retina/retina.py drift -o "$figures"
