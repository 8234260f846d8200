"""What masks remove."""

from regard import explore

result = explore.mask(n=8, window=2, padding=3)
result.save_figure("mask.svg")
print(result.finding)
