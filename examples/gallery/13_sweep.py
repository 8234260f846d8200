"""A sweep: the swing of one head against the multiplier, for several numbers of keys."""

from regard import explore

grid = {"beta": (1, 2, 4, 8, 16, 32, 64), "n": (2, 4, 16)}
swept = explore.sweep("norm-noise", grid, samples=20_000)
swept.save_figure("sweep.svg")
print(f"{len(swept.table)} experiments; the variance tends to ¼, a coin thrown between two values.")
