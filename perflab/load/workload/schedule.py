"""The instants that arrivals plan, and who takes part in a load when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np

from perflab.load.workload.arrivals import Arrivals, Burst, ClosedLoop, OpenLoop, Scripted, Stage
from perflab.load.workload.windows import BEGIN, COUNTED, END, instants_of, window_of

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
        yield np.zeros(arrivals.size, dtype=np.int64)
        return
    windows = instants_of(arrivals) if arrivals.windows else None
    expected = cumulative(arrivals.stages)[-1]
    for points in _unit_points(arrivals):
        inside = points[points < expected - 1e-9]
        planned = np.rint(inverse(arrivals.stages, inside) * 1e9).astype(np.int64)
        yield planned if windows is None else planned[window_of(planned, windows) >= 0]
        if len(inside) < len(points):
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
    stage_of_point = np.searchsorted(ends, points, side="right")
    for number, stage in enumerate(stages):
        in_stage = stage_of_point == number
        inside = points[in_stage] - starts[number]
        slope = (stage.end_rate - stage.rate) / stage.duration_s
        # The root of rate * t + slope / 2 * t^2 = inside, in the form that loses no digits.
        under = np.sqrt(np.maximum(stage.rate**2 + 2 * slope * inside, 0.0))
        divisor = stage.rate + under
        times[in_stage] = begins[number] + np.divide(
            2 * inside, divisor, out=np.zeros_like(inside), where=divisor > 0
        )
    return times


def planned_count(arrivals: Arrivals) -> int:
    """Return how many requests are planned in all; -1 if answers decide (closed, by time)."""
    if isinstance(arrivals, ClosedLoop):
        by_count = arrivals.requests and not arrivals.duration_s and not arrivals.warmup_s
        return arrivals.requests + arrivals.warmup_requests if by_count else -1
    if isinstance(arrivals, (OpenLoop, Burst)):
        return sum(len(chunk) for chunk in instants(arrivals))
    return -1


def last_instant_s(arrivals: OpenLoop | Burst) -> float:
    """Return the last planned instant, in seconds from the start."""
    return max((int(chunk[-1]) for chunk in _whole(arrivals) if len(chunk)), default=0) / 1e9


class Openings:
    """The windows of a load that starts at an instant."""

    def __init__(self, arrivals: ClosedLoop | OpenLoop, start_ns: int) -> None:
        windows = instants_of(arrivals, start_ns)
        self._begins: list[int] = windows[:, BEGIN].tolist()
        self._counted: list[int] = windows[:, COUNTED].tolist()
        self._ends: list[int] = windows[:, END].tolist()

    def next(self, planned_ns: int, never_ns: int) -> int:
        """Return the instant if it is in a window, else the next begin; ``never_ns`` after all."""
        number = bisect_right(self._begins, planned_ns) - 1
        if number >= 0 and planned_ns < self._ends[number]:
            return planned_ns
        number += 1
        return self._begins[number] if number < len(self._begins) else never_ns

    def counts(self, planned_ns: int) -> bool:
        """Return whether an instant lies in the counted part of its window."""
        number = bisect_right(self._begins, planned_ns) - 1
        return number >= 0 and self._counted[number] <= planned_ns < self._ends[number]


def active(arrivals: Arrivals, since_start_ns: int) -> int | None:
    """Return how many users take part at an instant; None for loads without users."""
    if isinstance(arrivals, Scripted):
        join_ns = arrivals.join_s * 1e9
    elif isinstance(arrivals, ClosedLoop):
        if (
            arrivals.duration_s
            and since_start_ns >= (arrivals.warmup_s + arrivals.duration_s) * 1e9
        ):
            return 0
        join_ns = arrivals.ramp_s * 1e9 / arrivals.users
    else:
        return None
    return sum(round(join_ns * user) <= since_start_ns for user in range(arrivals.users))
