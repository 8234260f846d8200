"""One head and noisy keys."""

from regard import explore

result = explore.noise(beta=10.0)
result.save_figure("noise.svg")
print(result.finding)
