"""A line that bends upward once: where, with an interval, and whether it bends at all.

The interval holds the places around the best one at which the score of the broken line (its
residuals against a step there) is as near 0 as flipped signs of whole clusters leave it, after
V. M. R. Muggeo, Aust. N. Z. J. Stat. 59, 2017. Residuals of a fit are too small where a cluster
has leverage, so scores are scaled up as by R. M. Bell, D. F. McCaffrey, Surv. Methodol. 28, 2002.
In simulation the percentile interval of a bootstrap and the unscaled scores cover 87 to 93%.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perflab.analysis.methods.clustering import DRAWS, Clusters, signs

CANDIDATES = 120
# Share of windows on either side of a place that may be the bend.
SIDE = 0.05
LARGEST_LEVERAGE = 0.97


@dataclass(frozen=True)
class Bend:
    """The best y = level + before * x + (after - before) * max(0, x - place).

    ``p_value`` is that of a straight line against an upward bend anywhere.
    ``squares`` and ``squares_line`` are sums of squared residuals of both.
    """

    place: float
    low: float
    high: float
    before: float
    after: float
    p_value: float
    squares: float
    squares_line: float
    residuals: np.ndarray


def bend(x: np.ndarray, y: np.ndarray, own: Clusters, confidence: float) -> Bend | None:
    """Fit a broken line to x and y, shape (windows,), in the order of ``own``.

    None where the values of x leave no room for a bend.
    """
    places = _places(x)
    line, level = own.centred(x[:, None]), own.centred(y[:, None])
    if places is None or (line**2).sum() < 1e-9 * ((x - x.mean()) ** 2).sum():
        return None
    slope = float((line * level).sum() / (line**2).sum())
    rest = level - slope * line
    hinges = _without(own.centred(np.maximum(0.0, x[:, None] - places)), line)
    size = (hinges**2).sum(axis=0)
    known = size > 1e-9 * size.max()
    places, hinges, size = places[known], hinges[:, known], size[known]
    if not len(places):
        return None
    change = (hinges * rest).sum(axis=0) / size
    gain = np.where(change > 0, change**2 * size, 0.0)
    best = int(np.argmax(gain))
    residuals = rest - change * hinges
    steps = _without(_without(own.centred((x[:, None] > places) * 1.0), line), hinges)
    lines = np.broadcast_to(line, hinges.shape)
    accepted = _accepted(_scaled(own, residuals, steps, [lines, hinges]), confidence)
    first, last = _around(best, accepted)
    half = (places[1] - places[0]) / 2 if len(places) > 1 else 0.0
    hinge = own.centred(np.maximum(0.0, x - places[best])[:, None])
    before = slope + float(change[best] * _tilt(hinge, line)[0])
    return Bend(
        float(places[best]),
        float(places[first] - half),
        float(places[last] + half),
        before,
        float(before + change[best]),
        _straight_p(_scaled(own, rest, hinges, [lines])),
        float((residuals[:, best] ** 2).sum()),
        float((rest**2).sum()),
        residuals[:, best],
    )


def _places(x: np.ndarray) -> np.ndarray | None:
    ordered, edge = np.sort(x), max(3, round(SIDE * len(x)))
    if len(x) < 4 * edge or not ordered[-edge] > ordered[edge - 1]:
        return None
    return np.linspace(ordered[edge - 1], ordered[-edge], CANDIDATES + 1)[:-1]


def _without(columns: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return columns, shape (n, k), without their part along ``direction``, (n, 1) or (n, k)."""
    left: np.ndarray = columns + direction * _tilt(columns, direction)
    return left


def _tilt(columns: np.ndarray, direction: np.ndarray) -> np.ndarray:
    size = (direction**2).sum(axis=0)
    along = (direction * columns).sum(axis=0)
    tilt: np.ndarray = -np.divide(along, size, out=np.zeros(along.shape), where=size > 0)
    return tilt


def _scaled(
    own: Clusters, residuals: np.ndarray, direction: np.ndarray, regressors: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return scores along ``direction`` per cluster and place, plain and scaled for leverage.

    With Q the orthonormal regressors of a cluster, z its direction and e its residuals, the scaled
    score z' (I - QQ')^(-1/2) e needs only the small matrix Q'Q.
    """
    columns = [np.full(direction.shape, len(direction) ** -0.5), *map(_unit, regressors)]
    products = [[own.sums(one * two) for two in columns] for one in columns]
    inner = np.stack([np.stack(row, axis=-1) for row in products], axis=-2)
    weights, axes = np.linalg.eigh(inner)
    along_rest = np.stack([own.sums(column * residuals) for column in columns], axis=-1)
    along_step = np.stack([own.sums(column * direction) for column in columns], axis=-1)
    turned_rest = np.einsum("gkij,gki->gkj", axes, along_rest)
    turned_step = np.einsum("gkij,gki->gkj", axes, along_step)
    # ((1 - w)^(-1/2) - 1) / w, which is 1/2 at w = 0.
    root = np.sqrt(1 - np.clip(weights, 0.0, LARGEST_LEVERAGE))
    factor = 1 / (root * (1 + root))
    plain = own.sums(direction * residuals)
    return plain, plain + (turned_rest * turned_step * factor).sum(axis=-1)


def _unit(columns: np.ndarray) -> np.ndarray:
    length = np.sqrt((columns**2).sum(axis=0))
    unit: np.ndarray = columns / np.where(length > 0, length, 1.0)
    return unit


def _straight_p(scores: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the p-value of no bend against an upward bend at any place."""
    seen, under_signs = _seen_and_flipped(scores)
    return (1 + int((under_signs.max(axis=1) >= seen.max() - 1e-12).sum())) / (1 + DRAWS)


def _accepted(scores: tuple[np.ndarray, np.ndarray], confidence: float) -> np.ndarray:
    seen, under_signs = _seen_and_flipped(scores)
    accepted: np.ndarray = np.abs(seen) <= np.quantile(np.abs(under_signs), confidence, axis=0)
    return accepted


def _seen_and_flipped(scores: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of scores over their deviation, shape (k,), and under signs, (draws, k)."""
    plain, scaled = scores
    size = np.sqrt((scaled**2).sum(axis=0))
    size = np.where(size > 0, size, np.inf)
    return plain.sum(axis=0) / size, signs(len(scaled)) @ scaled / size


def _around(best: int, accepted: np.ndarray) -> tuple[int, int]:
    """Return the first and last place of the accepted stretch that holds the best."""
    refused = ~accepted
    refused[best] = False
    below, above = np.flatnonzero(refused[:best]), np.flatnonzero(refused[best:])
    first = int(below[-1]) + 1 if len(below) else 0
    last = best + int(above[0]) - 1 if len(above) else len(accepted) - 1
    return first, last
