"""Several heads and a key of uncertain length."""

from regard import explore

result = explore.two_heads(heads=(2, 3, 4, 6))
result.save_figure("two-heads.svg")
print(result.finding)
