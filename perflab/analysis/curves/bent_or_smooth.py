"""Which shape latency over CPU has: a line that bends at one place, or a curve without one.

A broken line is near enough to any curve that steepens, so that a bend can be fitted to all of
them. A threshold is seen only where the broken line fits better than curves without one: by BIC,
clearly, which is a difference above 2. Sources: G. Schwarz, Ann. Stat. 6, 1978; R. E. Kass, A. E.
Raftery, J. Am. Stat. Assoc. 90, 1995 (how large a difference says something).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from perflab.analysis.curves.broken_line import Bend
from perflab.analysis.curves.queueing import QueueCurve, curve
from perflab.analysis.methods.clustering import Clusters

STRAIGHT, BROKEN, QUEUE = "straight line", "broken line", "queueing curve"
PARABOLA = "parabola"
CLEARLY = 2.0
DRAWN = 80
LARGEST_RHO = 0.98


@dataclass(frozen=True)
class Shapes:
    """The shape to draw, and the name of a smooth curve that fits as well as the broken line."""

    shape: str
    smooth: str = ""


def shapes(
    x: np.ndarray, y: np.ndarray, own: Clusters, found: Bend, queue: QueueCurve | None
) -> Shapes:
    """Hold a broken line of log latency y over x, shape (windows,), against smooth curves."""
    n = _independent(found.residuals, own)
    parts = _parabola(x, y, own)
    squares = {BROKEN: (found.squares, 3), PARABOLA: (float((parts[1] ** 2).sum()), 2)}
    if queue is not None:
        squares[QUEUE] = (queue.squares, 2)
    floor = 1e-12 * max(found.squares_line, 1e-300)
    bic = {
        name: n * math.log(max(value, floor)) + count * math.log(n)
        for name, (value, count) in squares.items()
    }
    smooth = [name for name in bic if name != BROKEN and bic[name] < bic[BROKEN] + CLEARLY]
    if not smooth:
        return Shapes(BROKEN)
    # A queue says more than a parabola: it is named unless the parabola is clearly nearer.
    best = min(smooth, key=lambda name: bic[name] - CLEARLY * (name == QUEUE))
    told = best != QUEUE or (queue is not None and math.isfinite(queue.low))
    return Shapes(best if told and bic[best] < bic[BROKEN] else BROKEN, best)


def _independent(rest: np.ndarray, own: Clusters) -> float:
    """Return how many independent windows say as much as these, whose noise is AR(1)."""
    within = own.cluster[1:] == own.cluster[:-1]
    total = float(rest @ rest)
    rho = float((rest[1:] * rest[:-1])[within].sum()) / total if total > 0 else 0.0
    rho = min(LARGEST_RHO, max(0.0, rho))
    return max(2.0, len(rest) * (1 - rho) / (1 + rho))


def _parabola(x: np.ndarray, y: np.ndarray, own: Clusters) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients of x and x^2, and what they leave of y."""
    scale = max(float(np.abs(x).max()), 1e-300)
    terms = own.centred(np.column_stack([x / scale, (x / scale) ** 2]))
    level = own.centred(y[:, None])[:, 0]
    solved = np.linalg.lstsq(terms, level, rcond=None)[0]
    return solved / np.array([scale, scale**2]), level - terms @ solved


def drawn(
    x: np.ndarray, y: np.ndarray, own: Clusters, found: Bend, queue: QueueCurve | None, shape: str
) -> tuple[tuple[float, float], ...]:
    """Return points (x, latency) of a shape, at the level of the data."""
    places = np.linspace(float(x.min()), float(x.max()), DRAWN)
    bent = _parabola(x, y, own)[0] if shape == PARABOLA else np.zeros(2)

    def model(at: np.ndarray) -> np.ndarray:
        if shape == QUEUE and queue is not None:
            return curve(at, queue.capacity, queue.shape)
        if shape == PARABOLA:
            parabola: np.ndarray = bent[0] * at + bent[1] * at**2
            return parabola
        if shape == STRAIGHT:
            return found.slope * at
        return found.before * at + (found.after - found.before) * np.maximum(0, at - found.place)

    logs = model(places) + float((y - model(x)).mean())
    return tuple(zip(places.tolist(), np.exp(logs).tolist(), strict=True))
