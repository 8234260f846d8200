#!/bin/sh
# Trains the small translator on sentences of its own grammar, lets it translate and opens one of
# its heads; `make demo` runs it. A translator that is there already is kept.
set -eu

run=runs/pocket
if [ ! -e "$run/best" ]; then
    printf '\n$ regard train --output %s\n' "$run"
    regard train --output "$run"
fi

for sentence in "Il ne dort pas." "La petite fille mange une pomme rouge." "Est-ce que tu vois la fille ?"; do
    printf '\n$ regard translate "%s"\n' "$sentence"
    regard translate --model "$run" "$sentence"
done

cat <<NEXT

What to try next:
  .venv/bin/regard translate                         line by line
  .venv/bin/regard translate --align "Il ne dort pas."
  .venv/bin/regard evaluate                          BLEU and chrF on held-out combinations
  .venv/bin/regard train --watch $run          the curves of the training
NEXT
