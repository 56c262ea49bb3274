"""When a load ends before its time, as data."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field

from perflab.load.frozen import FrozenModel

Measured = Literal["response", "ttft", "gap"]
_WORDS = re.compile(
    r"(?:(ttft|gap)_)?p(\d+(?:\.\d+)?)\s*<=?\s*(\d+(?:\.\d+)?)\s*(ms|s)?(?:/(\d+(?:\.\d+)?)s?)?"
)
_LIKE = "'p99<1000ms', 'p95<500ms/5s', or of streams 'ttft_p95<500ms', 'gap_p99<100ms'"


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

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return the objective that a text names.

        Raises
        ------
        ValueError
            It names none, and says how one looks.
        """
        match = _WORDS.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"'{text}' is not like {_LIKE}")
        of, percentile, bound, unit, window = match.groups()
        if of and window:
            raise ValueError(
                f"'{text}': times of streams are judged over the whole load; leave /{window}s out"
            )
        if not 0 < float(percentile) <= 100 or not float(bound):
            raise ValueError(f"'{text}': percentiles are above 0 and at most 100, times above 0")
        return cls(
            of=of or "response",
            percentile=float(percentile),
            below_ms=float(bound) * (1000.0 if unit == "s" else 1.0),
            **({"window_s": float(window)} if window else {}),
        )

    @staticmethod
    def checked(text: str) -> str:
        """Return a text that names an objective; raises as :meth:`of_text`."""
        Objective.of_text(text)
        return text

    @property
    def is_watched(self) -> bool:
        """Whether a miss ends the load."""
        return self.of == "response"

    @property
    def text(self) -> str:
        """Return it in words, as :meth:`of_text` takes them."""
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
    objectives: tuple[Objective, ...] = ()

    @property
    def failures_reached(self) -> str:
        """Return the words for an end by ``failures``."""
        return f"{self.failures} requests failed"
