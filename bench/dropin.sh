#!/usr/bin/env bash
# Runs LIBSVM's own programs and ours on the same files and compares what a script would see:
# the summary lines, the predictions, and models exchanged in both directions.
# Needs LIBSVM's svm-train, svm-predict and svm-scale (Debian: libsvm-tools); set LIBSVM_BIN to a
# folder to use others. Ours is $WIDEMARGIN or target/release/widemargin.
set -uo pipefail
cd "$(dirname "$0")/.."
ours=$(realpath "${WIDEMARGIN:-target/release/widemargin}")
libsvm=${LIBSVM_BIN:-$(dirname "$(command -v svm-train || echo /nowhere/svm-train)")}
if [ ! -x "$libsvm/svm-train" ]; then
  echo "skipped: LIBSVM's programs are not installed (Debian: apt-get install libsvm-tools)"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
for program in svm-train svm-predict svm-scale; do ln -s "$ours" "$work/bin/$program"; done
passed=0 failed=0

check() { # NAME COMMAND...: counts whether the command succeeds
  local name=$1
  shift
  if "$@" >"$work/check.log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL $name"
    head -n 8 "$work/check.log" | sed 's/^/     /'
  fi
}

# Predictions and decision values may differ in the last digits that the text shows.
close() { # FILE FILE TOLERANCE
  awk -v tolerance="$3" '
    NR == FNR { line[FNR] = $0; count = FNR; next }
    { n = split(line[FNR], a); m = split($0, b)
      if (n != m) { print "line " FNR ": " n " fields, " m " fields"; exit 1 }
      for (i = 1; i <= n; i++) {
        d = a[i] - b[i]; if (d < 0) d = -d
        s = a[i] < 0 ? -a[i] : a[i]; if (s < 1) s = 1
        if (a[i] != b[i] && d > tolerance * s) {
          print "line " FNR ": " a[i] " and " b[i]; exit 1 } } }
    END { if (FNR != count) { print count " lines and " FNR; exit 1 } }' "$1" "$2"
}

# The summary svm-train prints: same lines, numbers within the stopping tolerance.
same_summary() { # FILE FILE TOLERANCE
  diff <(grep -Eo '^(optimization finished|nu =|obj =|nSV =|Total nSV|Cross Validation)' "$1") \
       <(grep -Eo '^(optimization finished|nu =|obj =|nSV =|Total nSV|Cross Validation)' "$2") ||
    return 1
  close <(grep -Eo 'obj = [-0-9.e+]*|nu = [0-9.]*' "$1") \
        <(grep -Eo 'obj = [-0-9.e+]*|nu = [0-9.]*' "$2") "$3"
}

make_data() { # NAME KIND: writes $work/NAME.{train,test}, scaled by LIBSVM itself
  python3 - "$2" "$work/$1" <<'PY'
import random, sys
kind, path = sys.argv[1:]
random.seed(sum(map(ord, kind)))
def row():
    return [round(random.gauss(0, 1) * (k + 1), 4) for k in range(6)]
def label(x):
    score = x[0] - 0.5 * x[1] + 0.2 * x[2] ** 2 / 3 + random.gauss(0, 0.5)
    if kind == "regression":
        return f"{score:.6g}"
    if kind == "binary":
        return str(1 if score > 0.4 else -1)
    return str(2 + (score > 0.2) + 2 * (x[2] + x[3] + random.gauss(0, 0.5) > 0))
for part, count in (("train", 240), ("test", 120)):
    with open(f"{path}.{part}.raw", "w") as out:
        for _ in range(count):
            x = row()
            out.write(label(x) + "".join(f" {k}:{v}" for k, v in enumerate(x, 1) if abs(v) > 0.1) + "\n")
PY
}

for kind in binary multi regression; do
  make_data $kind $kind
  data=$work/$kind
  "$libsvm/svm-scale" -l -1 -u 1 -s "$data.range" "$data.train.raw" >"$data.train" 2>/dev/null
  "$libsvm/svm-scale" -r "$data.range" "$data.test.raw" >"$data.test" 2>/dev/null
  "$work/bin/svm-scale" -l -1 -u 1 -s "$data.range2" "$data.train.raw" >"$data.train2" 2>/dev/null
  "$work/bin/svm-scale" -r "$data.range2" "$data.test.raw" >"$data.test2" 2>/dev/null
  check "$kind svm-scale rows" cmp "$data.train" "$data.train2"
  check "$kind svm-scale test rows" cmp "$data.test" "$data.test2"
  check "$kind svm-scale range file" cmp "$data.range" "$data.range2"
done

one() { # KIND OPTIONS...: train with both, predict with all four combinations
  local kind=$1 data=$work/$1 model
  shift
  local name="$kind svm-train $*"
  "$libsvm/svm-train" "$@" "$data.train" "$work/theirs.model" >"$work/theirs.log" 2>&1
  check "$name" "$work/bin/svm-train" "$@" "$data.train" "$work/ours.model"
  "$work/bin/svm-train" "$@" "$data.train" "$work/ours.model" >"$work/ours.log" 2>&1
  local tolerance=1e-3
  case " $* " in *" -s 1 "*) tolerance=5e-3 ;; esac
  case " $* " in
    *" -b 1 "*) ;;
    *) check "$name: summary" same_summary "$work/theirs.log" "$work/ours.log" $tolerance ;;
  esac
  local probability=()
  case " $* " in *" -b 1 "*) probability=(-b 1) ;; esac
  for model in theirs ours; do
    [ "${#probability[@]}" = 0 ] || [ "$kind" != regression ] || continue
    "$libsvm/svm-predict" "${probability[@]}" "$data.test" "$work/$model.model" "$work/$model.by-theirs" \
      >"$work/$model.by-theirs.log" 2>&1
    "$work/bin/svm-predict" "${probability[@]}" "$data.test" "$work/$model.model" "$work/$model.by-ours" \
      >"$work/$model.by-ours.log" 2>&1
    check "$name: $model model, same predictions by both programs" \
      close "$work/$model.by-theirs" "$work/$model.by-ours" 2e-5
    check "$name: $model model, same summary line" \
      diff "$work/$model.by-theirs.log" "$work/$model.by-ours.log"
  done
}

# A nu-SVC's numbers are divided by a small r at the end: ask for more digits before, fewer after.
for kernel in "0" "1 -r 1" "2" "3 -g 0.05 -r -0.5"; do
  one binary -s 0 -t $kernel
  one binary -s 1 -t $kernel -n 0.6 -e 1e-5
  one multi -s 0 -t $kernel -c 5
  one multi -s 1 -t $kernel -n 0.5 -e 1e-5
  one regression -s 3 -t $kernel -p 0.2
  one regression -s 4 -t $kernel -n 0.3
done
one binary -s 2 -t 2 -n 0.3
one binary -s 0 -c 10 -g 0.3 -w1 2 -w-1 0.5
one multi -s 0 -c 10 -g 0.3 -w2 3 -w5 0.2 -h 0
one binary -s 0 -b 1
one multi -s 0 -b 1
one regression -s 3 -b 1

for options in "-v 5" "-v 3 -s 3" "-s 2 -v 4"; do
  kind=binary
  case $options in *"-s 3"*) kind=regression ;; esac
  check "cross validation $options" bash -c \
    "'$work/bin/svm-train' $options '$work/$kind.train' | grep -q '^Cross Validation'"
done

"$libsvm/svm-train" -s 9 "$work/binary.train" "$work/x" >/dev/null 2>&1; theirs=$?
"$work/bin/svm-train" -s 9 "$work/binary.train" "$work/x" >/dev/null 2>&1; mine=$?
check "unknown machine is refused with a non-zero code" test $theirs -ne 0 -a $mine -ne 0
echo "drop-in: $passed checks passed, $failed failed"
[ "$failed" = 0 ]
