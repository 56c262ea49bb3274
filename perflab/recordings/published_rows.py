"""The rows of ``data/published/``: numbers and claims, and what answers each.

``data/published/README.md`` says what the columns hold.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cached_property
from typing import Literal, TypeAlias

from pydantic import model_validator

from perflab.errors import ParameterError
from perflab.parameters import Parameters, parse_assignments

Kind = Literal["", "setting", "result", "effect", "derived", "figure", "target", "claim"]
CLAIM: Kind = "claim"
# The columns that an answer needs; it has no others.
OF_EXPERIMENT = ("experiment", "item")


class Answered(StrEnum):
    """What answers a published row."""

    CONTRAST = "contrast"
    RULE = "rule"
    VIEW = "view"
    SETTING = "setting"
    BUILT_IN = "built in"
    CHECK = "check"
    SAME_AS = "same as"
    NOT_COMPARABLE = "not comparable"
    NOT_TESTABLE = "not testable here"
    NONE = ""


NEEDED: dict[Answered, tuple[str, ...]] = {
    Answered.CONTRAST: OF_EXPERIMENT,
    Answered.RULE: OF_EXPERIMENT,
    Answered.VIEW: OF_EXPERIMENT,
    Answered.SETTING: OF_EXPERIMENT,
    Answered.CHECK: ("item",),
    Answered.SAME_AS: ("item",),
    Answered.BUILT_IN: ("reason",),
    Answered.NOT_COMPARABLE: ("reason",),
    Answered.NOT_TESTABLE: ("reason",),
    Answered.NONE: (),
}


class AnsweredRow(Parameters):
    """What published numbers and claims have in common.

    ``item`` is the contrast, the claim of a rule, the view, parameter, check or row that answers,
    as ``answered_by`` says; ``parameters`` are those that the experiment needs to have it.
    """

    study: str
    place: str
    kind: Kind = ""
    answered_by: Answered = Answered.NONE
    experiment: str = ""
    parameters: str = ""
    item: str = ""
    reason: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _has_what_its_answer_needs(self) -> AnsweredRow:
        needed = NEEDED[self.answered_by]
        given = [name for name in (*OF_EXPERIMENT, "reason") if getattr(self, name)]
        if set(given) != set(needed) or (self.parameters and "experiment" not in needed):
            columns = " and ".join(needed) or "no other column"
            how = f"answered_by = '{self.answered_by}'"
            raise ValueError(f"{how} needs {columns}, and nothing else")
        try:
            parse_assignments(self.parameters.split())
        except ParameterError as error:
            raise ValueError(f"parameters: {'; '.join(error.problems)}") from None
        return self

    @property
    def command(self) -> str:
        """The command that measures the row; empty where no experiment does."""
        words = [f"-p {word}" for word in self.parameters.split()]
        return " ".join(["perflab run", self.experiment, *words]) if self.experiment else ""

    @property
    def question(self) -> tuple[str, ...]:
        """What is asked to answer the row; rows of one question have one answer."""
        return self.answered_by, self.experiment, self.parameters, self.item

    def covers(self, name: str) -> bool:
        """Return whether the item means a contrast, or the claim of a rule, of this name.

        In an item ``*`` stands for any text, and ``?`` for one sign.
        """
        return self._pattern.fullmatch(name) is not None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.item).replace(r"\*", ".*").replace(r"\?", "."))


class Number(AnsweredRow):
    """A published number; ``place``, ``scenario`` and ``measure`` are its key in the ``study``."""

    scenario: str
    measure: str
    unit: str
    value: float
    qualifier: str = ""

    @property
    def key(self) -> str:
        """The row's name within its study."""
        return f"{self.place} / {self.scenario} / {self.measure}"

    @property
    def published(self) -> str:
        """The number as the study gives it, with its unit."""
        unit = "" if self.unit in ("1", "count", "ratio") else f" {self.unit}"
        return f"{self.qualifier}{self.value:,.10g}{unit}"


class Claim(AnsweredRow):
    """A published claim, as a sentence in our words."""

    kind: Kind = CLAIM
    claim_id: str
    claim: str

    @property
    def key(self) -> str:
        """The claim's name within its study."""
        return f"{self.place} / {self.claim_id}"

    @property
    def published(self) -> str:
        """What the study claims."""
        return self.claim

    @property
    def clause(self) -> str:
        """The claim as part of a longer sentence, without a capital letter and a full stop."""
        first = self.claim.split()[0]
        text = self.claim.removesuffix(".")
        return text[0].lower() + text[1:] if first[1:].islower() or len(first) == 1 else text


Row: TypeAlias = Number | Claim


class ReasonText(Parameters):
    """Why rows cannot be compared or tested: a sentence by its key."""

    reason: str
    text: str


class Estimand(Parameters):
    """A response of the lab that measures the same as a measure of a study."""

    study: str
    measure: str
    response: str
