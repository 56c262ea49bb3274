"""The rules of the study check: pure functions from parts to a result."""
