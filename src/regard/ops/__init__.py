"""The operator: exact attention for NumPy and torch, and what it attended to."""

from regard.ops._attention import attention
from regard.ops._inspection import Inspect, Inspection
from regard.ops._projections import multi_head_attention, self_attention

__all__ = ["Inspect", "Inspection", "attention", "multi_head_attention", "self_attention"]
