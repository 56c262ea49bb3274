"""Contrasts: published claims as comparisons of one response between sets of treatments."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from perflab.statistics.scales import Bound, Scale

Direction = Literal["greater", "smaller", "none"]


class ContrastPair(BaseModel):
    """Two sets of levels, each of which selects treatments."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    numerator: dict[str, str]
    denominator: dict[str, str]


class Contrast(ContrastPair):
    """A published claim as a ratio of one response between two sets of treatments.

    With ``interaction`` the effect is the ratio of this pair's ratio to that pair's.
    ``published_direction`` says whether the ratio is above 1 ("greater"), below 1 ("smaller"), or
    claimed to be 1 ("none"). With ``scale`` "difference" the effect is numerator minus denominator
    in the response's unit, for claims such as "10 points of CPU more"; it is above or below 0.
    With ``published_bound`` the published size is a bound: for example, a reduction by 79% from a
    baseline in which every request timed out says that the ratio is "at most" 0.21.
    ``not_testable`` is the reason why this machine cannot test the claim. ``set_by_load`` says how
    the load itself sets the answer, so that a measurement cannot find it. ``source`` is where the
    claim was published; an unpublished one has none.
    """

    name: str
    claim: str
    response: str
    scale: Scale = "ratio"
    interaction: ContrastPair | None = None
    published_ratio: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    published_difference: float | None = Field(default=None, allow_inf_nan=False)
    published_bound: Bound = ""
    published_direction: Direction | None = None
    source: str = ""
    not_testable: str = ""
    set_by_load: str = ""

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Contrast:
        direction, ratio = self.published_direction, self.published_ratio
        sizes = (direction, ratio, self.published_difference)
        if not self.source and any(published is not None for published in sizes):
            raise ValueError("it needs a source: where was its size or direction published?")
        if self.published_bound and ratio is None and self.published_difference is None:
            raise ValueError("published_bound needs the published size that is the bound")
        if self.published_bound and direction == "none":
            raise ValueError("'no effect' is no bound")
        if self.scale == "difference":
            return self._agrees_as_difference()
        if self.published_difference is not None:
            raise ValueError("published_difference needs scale 'difference'")
        if ratio is not None and _contradicts(direction, ratio, 1):
            raise ValueError(f"published_ratio {ratio} is not '{direction}' than 1")
        return self

    def _agrees_as_difference(self) -> Contrast:
        direction, size = self.published_direction, self.published_difference
        if self.published_ratio is not None:
            raise ValueError("a difference is compared with published_difference, not with a ratio")
        if direction == "none" or size == 0:
            raise ValueError("'no effect' is judged by a ratio: a unit has no margin of its own")
        if size is not None and _contradicts(direction, size, 0):
            raise ValueError(f"published_difference {size} is not '{direction}' than 0")
        return self


def _contradicts(direction: Direction | None, published: float, no_effect: float) -> bool:
    return (direction == "greater" and published <= no_effect) or (
        direction == "smaller" and published >= no_effect
    )
