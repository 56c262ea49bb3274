"""Figures of the registry system alone."""
