"""The average of two values."""

from regard import explore

result = explore.average(n=(4, 64, 256))
result.save_figure("average.svg")
print(result.finding)
