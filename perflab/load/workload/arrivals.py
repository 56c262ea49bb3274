"""How requests arrive, as data: closed and open loops, bursts, and scripted users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from perflab.parameters import FrozenModel

MOST_WINDOWS = 100_000


class Window(FrozenModel):
    """A time in which a load sends, in seconds from its planned start; the end is excluded."""

    start_s: float = Field(ge=0, le=86_400)
    end_s: float = Field(gt=0, le=86_400)


class Windows(FrozenModel):
    """The times in which a load sends; outside no request is planned, and connections stay open.

    Requests of the first ``settle_ms`` of each window are sent and not counted (stage ``warmup``):
    in that time queues fill, and caches that another treatment used meanwhile. At the end of a
    window requests under way may finish, and a late client still sends those planned within it.
    """

    spans: tuple[Window, ...] = Field(min_length=1, max_length=MOST_WINDOWS)
    settle_ms: float = Field(default=0.0, ge=0)


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
        if self.duration_s and self.ramp_s > self.warmup_s + self.duration_s:
            raise ValueError(
                "the ramp is longer than the load (warmup_s + duration_s), so not all users would "
                "join; make the load longer"
            )
        if self.keep_up and not self.requests:
            raise ValueError(
                "keep_up needs requests: a load with a duration keeps its users anyway"
            )
        if self.think_time_s and self.pacing_s:
            raise ValueError("give think_time_s or pacing_s, not both")
        if self.warmup_requests and self.warmup_s:
            raise ValueError("give warmup_requests or warmup_s, not both")
        return self

    @property
    def counted_s(self) -> float:
        """Return the length of what follows the warm-up in seconds; 0 without a bound."""
        return self.duration_s


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

    @property
    def counted_s(self) -> float:
        """Return the length of what follows the warm-up in seconds."""
        return self.duration_s - self.warmup_s


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
