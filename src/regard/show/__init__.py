"""Outputs: one module for each format; a Trace is a run that can show itself."""
