"""Where the mean of a noisy, autocorrelated series changes, and how noisy the series is.

The least-squares partition is exact (the optimum that PELT finds too: R. Killick, P. Fearnhead,
I. A. Eckley, J. Am. Stat. Assoc. 107, 2012; at a few hundred windows its pruning saves nothing).
The noise is taken for AR(1); its first estimate comes from differences, which changes of the mean
touch in a few places only (S. Chakar, E. Lebarbier, C. Lévy-Leduc, S. Robin, Bernoulli 23, 2017).
Outliers are drawn in first, because a change is what lasts (P. Fearnhead, G. Rigaill, J. Am. Stat.
Assoc. 114, 2019, reach the same with a bounded loss).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

# Shorter segments are outliers, not levels.
SMALLEST_SEGMENT = 4
# In long-run variances per change, times log n. The usual 2 lets AR(1) noise through, because its
# autocorrelation is itself estimated from the windows.
PENALTY = 3.0
OUTLIER = 3.0
RUNNING = 7
KEPT_DIFFERENCES = 0.8
LARGEST_RHO = 0.8
# As PENALTY, but in innovations: which level each began at was chosen as well.
WANDERING_PENALTY = 4.0
LARGEST_WANDERING = 0.99
# Long-run variance that the first partition assumes, in squared differences: AR(1) at 0.4.
PILOT = 2.0
# Added to the estimated autocorrelation, per root of n: underestimates cost false changes.
RHO_MARGIN = 0.3


@dataclass(frozen=True)
class Noise:
    """Deviation of single values, and of a mean of n of them: ``long_run / sqrt(n)``."""

    deviation: float
    rho: float

    @property
    def long_run(self) -> float:
        """Deviation that the sum of many values has per root of their number (AR(1))."""
        return self.deviation * math.sqrt((1 + self.rho) / (1 - self.rho))


def calmed(x: np.ndarray) -> np.ndarray:
    """Return ``x`` with single outliers drawn in to 3 deviations from the running median."""
    from scipy import ndimage, stats

    middle = ndimage.median_filter(x, size=min(RUNNING, len(x)), mode="mirror")
    away = x - middle
    spread = float(stats.median_abs_deviation(away, scale="normal"))
    # Where most values are equal there is no deviation to measure by: the mean one serves.
    spread = spread or float(np.abs(away).mean()) * math.sqrt(math.pi / 2)
    # The running median follows the noise a little, so that its residuals are too small.
    reach = OUTLIER * 1.1 * spread
    drawn_in: np.ndarray = middle + np.clip(away, -reach, reach)
    return drawn_in


def noise(x: np.ndarray, least: float) -> Noise:
    """Return the noise of ``x``, shape (n,), n >= 4, around a mean that changes now and then.

    A first partition, with a penalty from differences (changes of the mean touch few of them),
    gives residuals; their autocorrelation at lag 1, corrected for what the fitted means took
    away, gives an AR(1). ``least`` is a floor for the deviation.
    """
    n = len(x)
    pilot = PILOT * max(_trimmed_square(np.diff(x)), least**2)
    begins = partition(x, PENALTY * math.log(n) * pilot)
    rest = np.concatenate([part - part.mean() for part in np.split(x, begins[1:])])
    total = float(rest @ rest)
    if total <= n * least**2:
        return Noise(least, 0.0)
    rho = float(rest[1:] @ rest[:-1]) / total
    # Bias of the lag-1 autocorrelation about k fitted means: M. H. Quenouille, 1949; F. H. C.
    # Marriott, J. A. Pope, Biometrika 41, 1954.
    rho += len(begins) * (1 + 3 * max(0.0, rho)) / n + RHO_MARGIN / math.sqrt(n)
    rho = min(LARGEST_RHO, max(0.0, rho))
    lost = len(begins) * (1 + rho) / (1 - rho)
    return Noise(max(least, math.sqrt(total / max(n - lost, n / 2))), rho)


def beyond_wandering(x: np.ndarray, begins: list[int]) -> tuple[bool, Noise]:
    """Return whether levels explain ``x`` better than wandering does, and how it would wander.

    A series that wanders (AR(1) near 1) around one mean can be cut into levels as well as one that
    jumps. Both are fitted with AR(1) noise, and levels must lower the variance of its innovations
    by as much as their number costs.
    """
    n, changes = len(x), len(begins) - 1
    rest = np.concatenate([part - part.mean() for part in np.split(x, begins[1:])])
    alone, rho = _innovations(x - x.mean())
    with_levels, _ = _innovations(rest)
    gain = n * math.log(max(alone, 1e-300) / max(with_levels, 1e-300))
    rho = min(LARGEST_WANDERING, max(0.0, rho + (1 + 3 * max(0.0, rho)) / n))
    wandering = Noise(math.sqrt(alone / (1 - rho**2)), rho)
    return gain > WANDERING_PENALTY * math.log(n) * changes, wandering


def _innovations(x: np.ndarray) -> tuple[float, float]:
    """Return the variance of the innovations of an AR(1) around 0, and its autocorrelation."""
    earlier = float(x[:-1] @ x[:-1])
    rho = float(x[1:] @ x[:-1]) / earlier if earlier > 0 else 0.0
    rho = min(1.0, max(0.0, rho))
    left = x[1:] - rho * x[:-1]
    return float(left @ left) / len(left), rho


def _trimmed_square(differences: np.ndarray) -> float:
    """Return the variance of normal differences about 0 from their smaller nine tenths."""
    from scipy import stats

    squares = np.sort(differences**2)[: max(1, math.ceil(KEPT_DIFFERENCES * len(differences)))]
    edge = stats.norm.ppf((1 + KEPT_DIFFERENCES) / 2)
    kept_variance = 1 - 2 * edge * stats.norm.pdf(edge) / KEPT_DIFFERENCES
    return float(squares.mean() / kept_variance)


def partition(x: np.ndarray, penalty: float, smallest: int = SMALLEST_SEGMENT) -> list[int]:
    """Return where each segment of the best partition begins; the first is 0.

    Minimises the sum of squares within segments plus ``penalty`` per segment.

    Parameters
    ----------
    x : array, shape (n,)
        Finite values.
    penalty : float
        In squared units of ``x``.
    smallest : int
        Least length of a segment; a shorter series is one segment.
    """
    n = len(x)
    sums = np.concatenate([[0.0], np.cumsum(x - x.mean())])
    squares = np.concatenate([[0.0], np.cumsum((x - x.mean()) ** 2)])
    best, begin = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=int)
    best[0] = -penalty
    for end in range(smallest, n + 1):
        starts = np.arange(end - smallest + 1)
        within = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        costs = best[starts] + within + penalty
        begin[end] = int(np.argmin(costs))
        best[end] = costs[begin[end]]
    found, end = [], n
    while end > 0:
        end = int(begin[end])
        found.append(end)
    return found[::-1] or [0]
