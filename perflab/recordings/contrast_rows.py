"""Contrasts as rows of a table, which stands beside the code of their system."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from perflab.parameters import Parameters
from perflab.recordings.published_results import (
    Contrast,
    ContrastPair,
    Direction,
    published_value,
    stated,
)
from perflab.statistics.comparison import Scale, SizeBound

# The level that a side of one word is.
RUNG = "rung"
STATED = "{stated}"
TEXTS = ("name", "claim", "source", "set_by_load", "asks", "subject")


class ContrastRow(Parameters):
    """A contrast of a system, as its table holds it; what is not said here is as in `Contrast`.

    A side, such as the ``numerator``, is the name of a rung, or ``NAME=VALUE NAME=VALUE``. Those of
    the ``interaction`` are ``over`` and ``under``. ``published`` and ``published_over`` name rows
    of the study as ``PLACE / SCENARIO / MEASURE``: the published size is their ratio (on other
    scales their difference), or the first number alone.

    In texts ``{above}`` and ``{below}`` stand for these numbers, and ``{stated}`` for what the
    study claims under ``claim_id``, which is also the ``source`` unless another is given.
    """

    name: str
    numerator: str
    denominator: str = ""
    over: str = ""
    under: str = ""
    response: str
    scale: Scale = "ratio"
    published_direction: Direction | Literal[""] = ""
    limit: float | None = None
    published: str = ""
    published_over: str = ""
    published_bound: SizeBound = ""
    claim_id: str = ""
    claim: str = STATED
    source: str = ""
    set_by_load: str = ""
    asks: str = ""
    subject: str = ""

    @model_validator(mode="after")
    def _names_what_it_says(self) -> ContrastRow:
        if STATED in self.claim and not self.claim_id:
            raise ValueError(f"claim: '{self.claim}' needs a claim_id")
        if self.published_over and not self.published:
            raise ValueError("published_over: it needs the row published")
        for row in filter(None, (self.published, self.published_over)):
            if row.count(" / ") != 2:
                raise ValueError(f"'{row}' is no PLACE / SCENARIO / MEASURE")
        return self

    def contrast(self, study: str, *, sized: bool = True, **words: object) -> Contrast:
        """Return the contrast; ``words`` stand for the other names in braces.

        Without ``sized`` it has no published size, because its load is not the study's.
        """
        rows = [row.split(" / ") for row in (self.published, self.published_over) if row]
        numbers = [published_value(study, *row) for row in rows]
        words |= zip(("above", "below"), numbers, strict=False)
        if self.claim_id:
            words["stated"] = stated(study, self.claim_id)
        texts = {name: getattr(self, name).format_map(words) for name in TEXTS}
        if self.claim_id and not self.source:
            texts["source"] = f"{study} study, {self.claim_id}"
        return Contrast(
            **texts,
            **self._side_pair(words),
            **(self._size(numbers) if sized and numbers else {}),
            response=self.response,
            scale=self.scale,
            published_direction=self.published_direction or None,
            limit=self.limit,
        )

    def _side_pair(self, words: dict[str, object]) -> dict[str, Any]:
        sides = (self.numerator, self.denominator, self.over, self.under)
        numerator, denominator, over, under = (_levels(side.format_map(words)) for side in sides)
        interaction = ContrastPair(numerator=over, denominator=under) if over else None
        return {"numerator": numerator, "denominator": denominator, "interaction": interaction}

    def _size(self, numbers: list[float]) -> dict[str, Any]:
        first, *others = numbers
        if self.scale == "ratio":
            size = {"published_ratio": first / others[0] if others else first}
        else:
            size = {"published_difference": first - sum(others)}
        return {**size, "published_bound": self.published_bound}


def _levels(side: str) -> dict[str, str]:
    if side and "=" not in side:
        return {RUNG: side}
    return dict(word.split("=", 1) for word in side.split())
