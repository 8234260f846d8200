"""Hugging Face's models: regard's attention inside them, and their heads, opened."""

from regard.hf._attention import enable, inspecting
from regard.hf._opening import open_head

__all__ = ["enable", "inspecting", "open_head"]
