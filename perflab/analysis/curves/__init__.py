"""Shapes of curves: knees, power laws, scalability, lags, and where a series settles."""
