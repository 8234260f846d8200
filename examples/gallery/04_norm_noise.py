"""One head and a key of uncertain length."""

from regard import explore

result = explore.norm_noise(beta=8.0, tau=0.5)
result.save_figure("norm-noise.svg")
print(result.finding)
