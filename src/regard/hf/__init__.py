"""Hugging Face's models: regard's attention inside them."""

from regard.hf._attention import enable, inspecting

__all__ = ["enable", "inspecting"]
