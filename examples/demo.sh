#!/bin/sh
# Solves an exercise of the library, checks a wrong answer to it, runs an experiment and says what
# to try next; `make demo` runs it.
set -eu

show() {
    printf '\n$ %s\n' "$*"
    "$@"
}

exercise=unscaled-self-attention
show regard solve "$exercise"

# An answer whose softmax went down the columns; the context is right for those weights.
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cat >"$folder/answer.toml" <<'ANSWER'
Q = [[0.44, -0.36], [0.75, -0.09], [-0.19, 0.65]]
K = [[-0.40, 0.20], [-0.24, 1.11], [0.59, 0.64]]
V = [[0.72, -0.72], [1.26, -0.36], [-0.28, 1.13]]
scores = [[-0.2480, -0.5052, 0.0292], [-0.3180, -0.2799, 0.3849], [0.2060, 0.7671, 0.3039]]
weights = [[0.2851, 0.1718, 0.2671], [0.2659, 0.2152, 0.3813], [0.4490, 0.6131, 0.3516]]
context = [[0.3469, 0.0347], [0.3558, 0.1619], [0.9973, -0.1467]]
ANSWER
printf '\n$ cat answer.toml\n'
cat "$folder/answer.toml"
printf '\n$ regard check %s answer.toml\n' "$exercise"
code=0
(cd "$folder" && regard check "$exercise" answer.toml) || code=$?
test "$code" = 1 # the answer is wrong, and was found so

show regard explore two-heads --samples 20000 --level result

cat <<NEXT

What to try next (regard is installed in .venv/bin):
  .venv/bin/regard solve --list                      every exercise in the library
  .venv/bin/regard check --help                      answers in files, notebooks, pasted text
  .venv/bin/regard new self-attention --seed 7       an exercise of your own
  .venv/bin/regard explore --list                    twelve experiments
  .venv/bin/regard count --help                      multiplications, exponentials, bytes
  .venv/bin/regard info                              what is installed, and what is not
NEXT
