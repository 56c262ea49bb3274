"""Reasons against a trial: each is a sentence that knows whose fault it tells of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Self

Side = Literal["client", "server", "unknown"]


class Reason(str):
    """Why a trial may not be used; ``side`` says whose fault that is.

    ``client``: the load generator or its script, so that the trial says nothing of the service.
    ``server``: what only the service does, an overloaded one above all. ``unknown``: the machine,
    or what either of them may have done.
    """

    side: Side

    def __new__(cls, text: str, side: Side = "unknown") -> Self:
        made = super().__new__(cls, text)
        made.side = side
        return made


def side_of(reason: str) -> Side:
    """Return whose fault a reason tells of; a plain text does not say."""
    return reason.side if isinstance(reason, Reason) else "unknown"


def reason_columns(reasons: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns ``reasons`` and ``reason_sides`` of a trial's row."""
    return {
        "reasons": [str(reason) for reason in reasons],
        "reason_sides": [side_of(reason) for reason in reasons],
    }


def fault(sides: Iterable[str]) -> Side:
    """Return whose fault it is that a trial may not be used.

    The client's as soon as one reason is: what else went wrong may follow from it. The server's
    only where all reasons are; else nobody can be blamed.
    """
    found = set(sides)
    if "client" in found:
        return "client"
    return "server" if found == {"server"} else "unknown"
