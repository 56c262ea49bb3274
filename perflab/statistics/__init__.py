"""Pure functions over numbers: quantiles, comparisons, families, bounds, curves."""

# The recorded errors of requests that were cut off: without that they would have taken longer.
CENSORED = ("timeout", "aborted", "unsent")
