"""Shapes of curves: correlation, knees, power laws, and where a series settles."""
