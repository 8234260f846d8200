"""Copying one value."""

from regard import explore

result = explore.copy(n=(4, 64, 1024))
result.save_figure("copy.svg")
print(result.finding)
