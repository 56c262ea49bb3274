"""Arrival schedules: pure functions of rate, process and seed, fixed before the start.

A schedule with rates that change is made from one with rate 1 by inverting the cumulative rate
(time change of a counting process; Cinlar, "Introduction to Stochastic Processes", 1975, 4.7).
Unit points at 0, 1, 2, ... give constant gaps; sums of exponentials give a Poisson process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from perflab.load.workload import Arrivals, Burst, ClosedLoop, OpenLoop, Stage

CHUNK = 1 << 12


def instants(arrivals: OpenLoop | Burst, worker: int = 0, workers: int = 1) -> Iterator[np.ndarray]:
    """Yield the planned instants of one worker, as int64 nanoseconds from the start.

    The workers' schedules together are the whole schedule: worker k takes its k-th, (k+n)-th, ...
    instants. Chunks bound the memory; they do not change the numbers.
    """
    first = 0
    for chunk in _whole(arrivals):
        yield chunk[(worker - first) % workers :: workers]
        first += len(chunk)


def _whole(arrivals: OpenLoop | Burst) -> Iterator[np.ndarray]:
    if isinstance(arrivals, Burst):
        for wave in range(arrivals.waves):
            yield np.full(arrivals.size, round(wave * arrivals.interval_s * 1e9), dtype=np.int64)
        return
    left = arrivals.requests or None
    expected = cumulative(arrivals.stages)[-1]
    for points in _unit_points(arrivals):
        inside = points[points < expected - 1e-9]
        if left is not None:
            inside = inside[:left]
            left -= len(inside)
        yield np.rint(inverse(arrivals.stages, inside) * 1e9).astype(np.int64)
        if len(inside) < len(points) or left == 0:
            return


def _unit_points(arrivals: OpenLoop) -> Iterator[np.ndarray]:
    random = np.random.default_rng(arrivals.seed)
    last = 0.0
    while True:
        if arrivals.arrivals == "constant":
            points = last + np.arange(CHUNK)
            last += CHUNK
        else:
            points = last + np.cumsum(random.exponential(size=CHUNK))
            last = float(points[-1])
        yield points


def cumulative(stages: Sequence[Stage]) -> np.ndarray:
    """Return the expected number of arrivals at the end of each stage."""
    return np.cumsum([(stage.rate + stage.end_rate) / 2 * stage.duration_s for stage in stages])


def inverse(stages: Sequence[Stage], points: np.ndarray) -> np.ndarray:
    """Return the times in seconds at which the cumulative rate reaches ``points``."""
    ends = cumulative(stages)
    starts = np.concatenate(([0.0], ends[:-1]))
    begins = np.concatenate(([0.0], np.cumsum([stage.duration_s for stage in stages])[:-1]))
    times = np.empty(len(points))
    which = np.searchsorted(ends, points, side="right")
    for number, stage in enumerate(stages):
        own = which == number
        inside = points[own] - starts[number]
        slope = (stage.end_rate - stage.rate) / stage.duration_s
        # The root of rate * t + slope / 2 * t^2 = inside, in the form that loses no digits.
        under = np.sqrt(np.maximum(stage.rate**2 + 2 * slope * inside, 0.0))
        divisor = stage.rate + under
        times[own] = begins[number] + np.divide(
            2 * inside, divisor, out=np.zeros_like(inside), where=divisor > 0
        )
    return times


def planned_count(arrivals: Arrivals) -> int:
    """Return how many requests are planned in all; -1 when answers decide (closed, by time)."""
    if isinstance(arrivals, ClosedLoop):
        by_count = arrivals.requests and not arrivals.duration_s and not arrivals.warmup_s
        return arrivals.requests + arrivals.warmup_requests if by_count else -1
    if isinstance(arrivals, (OpenLoop, Burst)):
        return sum(len(chunk) for chunk in instants(arrivals))
    return -1
