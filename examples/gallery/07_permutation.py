"""Permuting the tokens, with every kind of position."""

from regard import explore

result = explore.permutation(n=6, d=8)
result.save_figure("permutation.svg")
print(result.finding)
