"""What the chat study published of a treatment, and whether that has the study's load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perflab.systems.chat.rungs import SCENARIOS, published_ms

SAME, OTHER = "as published", "another one"


@dataclass(frozen=True)
class PublishedRow:
    """What was published of a treatment: percentiles of pings in ms by name (``p90``).

    ``same_load``: the treatment has that row's load; only then may a size be compared.
    """

    ms: Mapping[str, float]
    same_load: bool


def published_of(levels: Mapping[str, str]) -> PublishedRow:
    """Return what was published of a treatment with these levels; nothing of most."""
    names = {scenario: name for name, scenario in SCENARIOS.items()}
    stated = levels.get("scenario", "")
    rung = names.get(stated) or levels.get("rung", "")
    values = {f"p{share}": value for share, value in published_ms(rung).items()}
    return PublishedRow(values, bool(stated))
