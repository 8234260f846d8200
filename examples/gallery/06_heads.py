"""One head and three on the same weights, those of course document 004."""

import regard

trace = regard.solve("numpy-multi-head").trace
given = {name: trace[name].value for name in ("X", "WQ", "WK", "WV")}
result = regard.explore.heads(heads=3, **given)
result.save_figure("heads.svg")
print(result.finding)
