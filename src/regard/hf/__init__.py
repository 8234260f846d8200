"""Hugging Face: heads of its models, opened."""

from regard.hf._opening import open_head

__all__ = ["open_head"]
