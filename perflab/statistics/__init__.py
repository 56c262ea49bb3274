"""Pure functions over numbers: quantiles, comparisons, families, bounds, curves."""
