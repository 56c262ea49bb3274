"""Analyses of runs against the claims of the inference study."""
