"""Why scores are divided by √d."""

from regard import explore

result = explore.scale(d=(4, 16, 64, 256, 1024))
result.save_figure("scale.svg")
print(result.finding)
