"""When a load ends before its time, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perflab.load.frozen import FrozenModel

Measured = Literal["response", "ttft", "gap"]


class Objective(FrozenModel):
    """A bound on a percentile of a time, in ms.

    ``of`` is that time: the response time; of streams also the time to the first chunk (``ttft``)
    or the gaps between chunks (``gap``). A response time is looked at over a window while the load
    goes on, and ends it when missed; times of streams are judged when the load is over.
    """

    percentile: float = Field(gt=0, le=100)
    below_ms: float = Field(gt=0)
    window_s: float = Field(default=5.0, gt=0)
    of: Measured = "response"

    @property
    def is_watched(self) -> bool:
        """Whether a miss ends the load."""
        return self.of == "response"

    @property
    def text(self) -> str:
        """Return it as the command line has it."""
        bound = f"p{self.percentile:g}<{self.below_ms:g}ms"
        return f"{bound}/{self.window_s:g}s" if self.is_watched else f"{self.of}_{bound}"


class StopRules(FrozenModel):
    """When a load ends before its time; 0 or nothing means never. Data is always kept.

    ``failures`` ends it at so many failures, of all workers and stages together, and makes them an
    answer of the study: until the number is reached they do not refuse the load, whatever their
    share. Nothing is started any more; what is under way goes on to its end or its time-out, and
    what waits for a connection is given up (``unsent``). What ended after the failure that
    completed the number is recorded as stage ``after_stop`` and in no time or throughput.
    """

    failures: int = Field(default=0, ge=0)
    failure_share: float = Field(default=0.0, ge=0, le=1)
    objectives: tuple[Objective, ...] = ()

    @property
    def failures_reached(self) -> str:
        """Return the words for an end by ``failures``."""
        return f"{self.failures} requests failed"
