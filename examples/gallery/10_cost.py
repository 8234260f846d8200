"""What attention costs on this machine."""

from regard import explore

result = explore.cost(n=(128, 256, 512, 1024, 2048))
result.save_figure("cost.svg")
print(result.finding)
