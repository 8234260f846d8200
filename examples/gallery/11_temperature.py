"""Temperature and entropy."""

from regard import explore

result = explore.temperature(n=64)
result.save_figure("temperature.svg")
print(result.finding)
