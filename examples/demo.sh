#!/bin/sh
# Solves an exercise of the library and says what to try next; `make demo` runs it.
set -eu

exercise=unscaled-self-attention
echo "\$ regard solve $exercise"
regard solve "$exercise"

cat <<NEXT

What to try next (regard is installed in .venv/bin):
  .venv/bin/regard solve --list                      every exercise in the library
  .venv/bin/regard solve $exercise --only weights
  .venv/bin/regard solve $exercise --format html --output solution.html
  .venv/bin/regard count --help                      multiplications, exponentials, bytes
  .venv/bin/regard info                              what is installed, and what is not
NEXT
