"""What answers a published row: a few words in its file, of one of the forms of ``Answered``.

==============================================  ==================================================
in the file                                     what it says
==============================================  ==================================================
``contrast EXPERIMENT [NAME=VALUE ...]: NAME``  a contrast judges it; ``*`` in the name: several do
``view EXPERIMENT [NAME=VALUE ...]: NAME``      a picture shows it, and nothing judges it
``view EXPERIMENT [...]: NAME / CLAIM``         the picture's own rule judges it
``setting EXPERIMENT [...]: NAME``              a parameter or factor has this value
``built in: WHERE``                             the system under test or its load is made so
``check: NAME``                                 the study check says what it is worth
``same as: PLACE / SCENARIO / MEASURE``         it says what that row says, and is counted with it
``not comparable: REASON``                      of another estimand or load than what is measured
``not testable here: REASON``                   what this lab or its machines cannot test
``not built``                                   of a system that is not built yet
==============================================  ==================================================

``NAME=VALUE`` are parameters that the experiment needs to have the contrast, as ``perflab run -p``
takes them. ``REASON`` is a key of ``reasons.csv``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from perflab.errors import RecordingError
from perflab.parameters import did_you_mean


class Answered(StrEnum):
    """What kind of answer a published row has."""

    CONTRAST = "contrast"
    VIEW = "view"
    SETTING = "setting"
    BUILT_IN = "built in"
    CHECK = "check"
    SAME_AS = "same as"
    NOT_COMPARABLE = "not comparable"
    NOT_TESTABLE = "not testable here"
    NOT_BUILT = "not built"
    NONE = ""


BY_EXPERIMENT = (Answered.CONTRAST, Answered.VIEW, Answered.SETTING)
BY_REASON = (Answered.NOT_COMPARABLE, Answered.NOT_TESTABLE)
OF_VIEW = " / "
_EXPERIMENT = re.compile(r"(contrast|view|setting) (\S+)((?: [a-z_]+=\S+)*): (.+)")
_OTHERS = re.compile(r"([a-z ]+): (.+)")
FORMS = "; ".join(
    (
        *(f"{kind} EXPERIMENT [NAME=VALUE ...]: NAME" for kind in BY_EXPERIMENT),
        *(f"{kind}: TEXT" for kind in ("built in", "check", "same as", *BY_REASON)),
        Answered.NOT_BUILT,
    )
)


@dataclass(frozen=True)
class Answer:
    """An answer taken apart.

    ``name`` is the contrast, view, parameter, check, row or reason, as ``kind`` says.
    """

    kind: Answered
    name: str = ""
    experiment: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def command(self) -> str:
        """What to type to have it measured."""
        words = [f"-p {name}={value}" for name, value in self.parameters]
        return " ".join(["perflab run", self.experiment, *words])

    @property
    def view(self) -> str:
        """The view that is named."""
        return self.name.partition(OF_VIEW)[0]

    @property
    def claim(self) -> str:
        """The claim that the view judges; empty where it only shows."""
        return self.name.partition(OF_VIEW)[2]

    def covers(self, name: str) -> bool:
        """Say whether a contrast of this name is meant."""
        pattern = ".*".join(map(re.escape, self.name.split("*")))
        return re.fullmatch(pattern, name) is not None


def parse(text: str) -> Answer:
    """Take an answer apart.

    Raises
    ------
    RecordingError
        It has none of the forms; the message names them.
    """
    if text in (Answered.NONE, Answered.NOT_BUILT):
        return Answer(Answered(text))
    if found := _EXPERIMENT.fullmatch(text):
        kind, experiment, words, name = found.groups()
        pairs = (word.partition("=") for word in words.split())
        parameters = tuple((key, value) for key, _, value in pairs)
        return Answer(Answered(kind), name, experiment, parameters)
    known = {str(kind) for kind in Answered} - {str(kind) for kind in BY_EXPERIMENT}
    if (found := _OTHERS.fullmatch(text)) and found[1] in known - {Answered.NOT_BUILT}:
        return Answer(Answered(found[1]), found[2])
    first = text.partition(":")[0]
    hint = did_you_mean(first, [kind for kind in Answered if kind])
    raise RecordingError(f"'{text}' answers nothing{hint}; an answer is one of: {FORMS}")
