"""The words for what was found: two sides compared, held against a study, and of a gate.

Terminal, notebook, section, page, figure and ledger say these words and no others;
``docs/reference/glossary.md`` explains each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Compared(StrEnum):
    """What two sides show beside each other; more and less where neither of them is better."""

    BETTER = "better"
    WORSE = "worse"
    MORE = "more"
    LESS = "less"
    SAME = "same"
    NOT_DECIDED = "not decided"
    NOT_COMPARED = "not compared"


class AgainstStudy(StrEnum):
    """What an effect shows beside a published one."""

    AS_PUBLISHED = "as published"
    LESS = "less than published"
    MORE = "more than published"
    IN_DIRECTION = "in the direction published"
    OTHER_WAY = "the other way"
    NO_EFFECT = "no effect"
    NOT_DECIDED = "not decided"
    NOT_MEASURED = "not measured"
    NOT_TESTABLE = "not testable here"


class Gate(StrEnum):
    """What a comparison shows of a threshold."""

    PASSED = "passed"
    FAILED = "FAILED"
    NOT_DECIDED = "not decided"
    NOT_JUDGED = "not judged"


Result = Compared | AgainstStudy
DIFFERENT = (Compared.BETTER, Compared.WORSE, Compared.MORE, Compared.LESS)
# Neither the one nor the other is known.
OPEN = (
    Compared.NOT_DECIDED, Compared.NOT_COMPARED,
    AgainstStudy.NOT_DECIDED, AgainstStudy.NOT_MEASURED,
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """A result with its reason.

    ``within`` stands in brackets behind it: what "same" and "no effect" mean, or that the load sets
    what is compared. ``is_shown``: the direction that a study published is certain, however large
    the effect is beside the published one.
    """

    result: Result
    reason: str
    within: str = ""
    is_shown: bool = False

    def __str__(self) -> str:
        return f"{self.result} ({self.within})" if self.within else self.result.value
