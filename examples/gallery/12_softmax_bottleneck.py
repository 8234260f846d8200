"""The sharpest weights within a norm."""

from regard import explore

result = explore.softmax_bottleneck(norm=(4, 8, 12))
result.save_figure("softmax-bottleneck.svg")
print(result.finding)
