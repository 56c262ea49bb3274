"""What a load is judged by, as data: bounds on percentiles of its times."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field

from perflab.load.frozen import FrozenModel

Measured = Literal["response", "ttft", "gap"]
_WORDS = re.compile(r"(?:(ttft|gap)_)?p(\d+(?:\.\d+)?)\s*<=?\s*(\d+(?:\.\d+)?)\s*(ms|s)?")
_LIKE = "'p99<1000ms', or of streams 'ttft_p95<500ms', 'gap_p99<100ms'"


class Objective(FrozenModel):
    """A bound on a percentile of a time, in ms, over the whole measure stage.

    ``of`` is that time: the response time; of streams also the time to the first chunk (``ttft``)
    or the gaps between chunks (``gap``).
    """

    percentile: float = Field(gt=0, le=100)
    below_ms: float = Field(gt=0)
    of: Measured = "response"

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return the objective that a text names; the ValueError of others says how one looks."""
        match = _WORDS.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"'{text}' is not like {_LIKE}")
        of, percentile, bound, unit = match.groups()
        if not 0 < float(percentile) <= 100 or not float(bound):
            raise ValueError(f"'{text}': percentiles are above 0 and at most 100, times above 0")
        return cls(
            of=of or "response",
            percentile=float(percentile),
            below_ms=float(bound) * (1000.0 if unit == "s" else 1.0),
        )

    @staticmethod
    def checked(text: str) -> str:
        """Return a text that names an objective; raises as :meth:`of_text`."""
        Objective.of_text(text)
        return text

    @property
    def name(self) -> str:
        """Return which percentile of which time it is about."""
        share = f"p{self.percentile:g}"
        return share if self.of == "response" else f"{self.of}_{share}"

    @property
    def text(self) -> str:
        """Return it in words, as :meth:`of_text` takes them."""
        return f"{self.name}<{self.below_ms:g}ms"
