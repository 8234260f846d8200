"""The operator: exact attention for NumPy and torch, and what it attended to."""

from regard.ops._attention import attention
from regard.ops._inspection import Inspect, Inspection

__all__ = ["Inspect", "Inspection", "attention"]
