"""Attention computations as graphs of named steps, and how such graphs are run and read."""
