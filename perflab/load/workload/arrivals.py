"""How requests arrive, as data: closed and open loops, bursts, and scripted users."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from perflab.load.workload.windows import BEGIN, COUNTED, END, Windows, window_of
from perflab.parameters import FrozenModel


class ClosedLoop(FrozenModel):
    """``users`` users, each of whom waits for its answer before the next request.

    The load is bounded by ``requests`` in all, by ``duration_s``, or both (0: no bound).
    ``warmup_requests`` or ``warmup_s`` come first, by the same users and without a pause, recorded
    as stage ``warmup``. A user waits ``think_time_s`` after an answer, or keeps a constant pace of
    one request per ``pacing_s``. Users join evenly over ``ramp_s``. ``max_duration_s`` bounds the
    whole load; requests not sent by then count as unsent.

    With ``keep_up`` users go on until the last of the ``requests`` that count is answered; their
    further requests are recorded as stage ``after``. Without it the last ``users`` requests meet
    ever fewer others, and a steady load seems to get faster.

    With ``windows`` a request that would be planned outside of them is planned for the begin of the
    next window: all users start again at once.
    """

    kind: Literal["closed"] = "closed"
    users: int = Field(ge=1, le=100_000)
    requests: int = Field(default=0, ge=0)
    duration_s: float = Field(default=0.0, ge=0, le=86_400)
    warmup_requests: int = Field(default=0, ge=0)
    warmup_s: float = Field(default=0.0, ge=0, le=86_400)
    think_time_s: float = Field(default=0.0, ge=0)
    pacing_s: float = Field(default=0.0, ge=0)
    ramp_s: float = Field(default=0.0, ge=0)
    keep_up: bool = False
    windows: Windows | None = None
    max_duration_s: float = Field(default=120.0, gt=0, le=172_800)

    @model_validator(mode="after")
    def _is_bounded(self) -> Self:
        if not self.requests and not self.duration_s:
            raise ValueError("give requests or duration_s: a load without an end is refused")
        if self.keep_up and not self.requests:
            raise ValueError(
                "keep_up needs requests: a load with a duration keeps its users anyway"
            )
        if self.think_time_s and self.pacing_s:
            raise ValueError("give think_time_s or pacing_s, not both")
        if self.warmup_requests and self.warmup_s:
            raise ValueError("give warmup_requests or warmup_s, not both")
        return self


class Stage(FrozenModel):
    """A stage of an open loop: the rate changes evenly to another (requests per second)."""

    rate: float = Field(ge=0, le=1e6)
    to_rate: float | None = Field(default=None, ge=0, le=1e6)
    duration_s: float = Field(gt=0, le=86_400)

    @property
    def end_rate(self) -> float:
        """Return the rate at the end of the stage."""
        return self.rate if self.to_rate is None else self.to_rate


class OpenLoop(FrozenModel):
    """Requests arrive by a schedule computed before the start, whatever the server does.

    Arrivals have constant gaps or are a Poisson process (``seed``), in stages. The first
    ``warmup_s`` of the schedule are recorded as stage ``warmup``. With ``windows`` only the
    arrivals of the schedule that lie in a window are kept: within windows the process is the same.
    """

    kind: Literal["open"] = "open"
    stages: tuple[Stage, ...] = Field(min_length=1)
    arrivals: Literal["constant", "poisson"] = "constant"
    seed: int = Field(default=0, ge=0)
    warmup_s: float = Field(default=0.0, ge=0)
    windows: Windows | None = None

    @model_validator(mode="after")
    def _has_arrivals(self) -> Self:
        if not any(stage.rate + stage.end_rate for stage in self.stages):
            raise ValueError("every stage has rate 0: nothing would be sent")
        return self

    @property
    def duration_s(self) -> float:
        """Return the length of the schedule in seconds."""
        return sum(stage.duration_s for stage in self.stages)


class Burst(FrozenModel):
    """``size`` requests planned for the same instant."""

    kind: Literal["burst"] = "burst"
    size: int = Field(ge=1, le=100_000)


class Scripted(FrozenModel):
    """Users whose actions are the methods of a Python class (see ``users.User``).

    ``script`` names the class: ``path/to/file.py:Class`` or ``module:Class``; ``parameters`` are
    for it. User k joins after k times ``join_s``. Users act until ``duration_s`` is over, or for
    ``actions`` actions (0: no limit). ``monitor`` names the class of one more user, whose number is
    ``users``: it acts from the start until the others have gone, without a limit on actions.
    """

    kind: Literal["scripted"] = "scripted"
    script: str
    users: int = Field(ge=1, le=100_000)
    duration_s: float = Field(gt=0, le=86_400)
    actions: int = Field(default=0, ge=0)
    join_s: float = Field(default=0.0, ge=0)
    warmup_s: float = Field(default=0.0, ge=0)
    seed: int = Field(default=0, ge=0)
    parameters: Mapping[str, Any] = Field(default_factory=dict)
    monitor: str = ""


Arrivals = Annotated[ClosedLoop | OpenLoop | Burst | Scripted, Field(discriminator="kind")]


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


def instants_of(arrivals: ClosedLoop | OpenLoop, start_ns: int = 0) -> np.ndarray:
    """Return the instants of the windows of arrivals (:meth:`Windows.instants`)."""
    assert arrivals.windows is not None
    return arrivals.windows.instants(start_ns, arrivals.warmup_s)


class Openings:
    """The windows of a load that starts at an instant.

    Attributes
    ----------
    counted : list of (int, int)
        Begin and end of the counted part of each window, in ns; some have no length.
    """

    def __init__(self, arrivals: ClosedLoop | OpenLoop, start_ns: int) -> None:
        windows = instants_of(arrivals, start_ns)
        self._begins: list[int] = windows[:, BEGIN].tolist()
        self._counted: list[int] = windows[:, COUNTED].tolist()
        self._ends: list[int] = windows[:, END].tolist()
        self.counted = list(zip(self._counted, self._ends, strict=True))

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
