"""P-values of many paired differences at once, corrected for having looked at all of them.

Signs of whole blocks are flipped for all columns together, and each t statistic is compared with
the largest of any column under each flip: exact at any n and however the columns hang together.
Benjamini and Hochberg's way (``benjamini_hochberg`` in
:mod:`perflab.analysis.methods.comparison`) is for the few claims of a run; over hundreds of columns
it has no power here, as one column's exact p-value cannot be below 2 / 2^n (3% at 6 blocks).
Source: P. H. Westfall, S. S. Young, Resampling-Based Multiple Testing, 1993, chapter 2 (single-step
maxT).
"""

from __future__ import annotations

import math

import numpy as np

from perflab.analysis.methods.clustering import signs

ENUMERATED = 11


def max_t_p(differences: np.ndarray) -> np.ndarray:
    """Return two-sided p-values of "no difference" per column, corrected over the columns.

    Exact up to 11 blocks (all signs); beyond that from drawn signs with a fixed seed.

    Parameters
    ----------
    differences : array, shape (blocks, columns)
        One row per block. NaNs where there are fewer than 2 blocks.
    """
    n, columns = differences.shape
    if n < 2 or not columns:
        return np.full(columns, math.nan)
    # Sums of squares stay as signs flip: |t| rises with |sum| over their root.
    size = np.sqrt((differences**2).sum(axis=0))
    unit = np.divide(differences, size, out=np.zeros(differences.shape), where=size > 0)
    seen = np.abs(unit.sum(axis=0))
    largest = np.abs(_flips(n) @ unit).max(axis=1)
    extreme = (largest[:, None] >= seen - 1e-12).sum(axis=0)
    drawn = n > ENUMERATED
    found: np.ndarray = (extreme + drawn) / (len(largest) + drawn)
    return found


def _flips(n: int) -> np.ndarray:
    """Return signs, shape (flips, n): all up to a common sign, or as many as are drawn."""
    if n > ENUMERATED:
        return signs(n)
    bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1
    flips: np.ndarray = 1.0 - 2 * bits
    return flips
