"""Figures of the inference system alone."""
