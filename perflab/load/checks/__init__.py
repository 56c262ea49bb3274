"""Checks of the generator and its load."""
