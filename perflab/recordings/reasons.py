"""What is said of runs and trials: remarks that travel with numbers, reasons not to use them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Side = Literal["client", "server", "unknown"]
# What the lab and its systems say is told apart by code; a system's own begin with its name.
CODE = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$"


class Remark(BaseModel):
    """A sentence about a trial or a run, and as text that sentence.

    ``code`` says of which kind it is, ``side`` whom it tells of.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str = Field(pattern=CODE, max_length=100)
    side: Side = "unknown"
    text: str

    def __str__(self) -> str:
        return self.text

    def __contains__(self, words: str) -> bool:
        """Say whether the sentence has these words."""
        return words in self.text


class Reason(Remark):
    """Why a trial may not be used; ``side`` says whose fault that is.

    ``client``: the load generator or its script, so that the trial says nothing of the service.
    ``server``: what only the service does, an overloaded one above all. ``unknown``: the machine,
    or what either of them may have done.
    """


def fault(reasons: Iterable[Reason]) -> Side:
    """Return whose fault it is that a trial may not be used.

    The client's as soon as one reason is: what else went wrong may follow from it. The server's
    only where all reasons are; else nobody can be blamed.
    """
    found = {reason.side for reason in reasons}
    if "client" in found:
        return "client"
    return "server" if found == {"server"} else "unknown"
