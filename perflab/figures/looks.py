"""How each treatment appears: one colour and one marker in every figure of a run."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.colors import to_rgb

from perflab.figures.pairs import side_by_side
from perflab.figures.theme import PALETTE as PALETTE
from perflab.recordings import RunRecord

MARKERS = ("o", "s", "D", "^", "v", "P", "X", "h")


@dataclass(frozen=True)
class Look:
    """How one treatment appears in every figure of a run."""

    color: str
    marker: str
    label: str


def appearance(place: int) -> tuple[str, str]:
    """Return the colour and marker of the thing in a place; no two of the first 64 are alike.

    Colours begin anew with the ninth, and markers then lie one further on.
    """
    again, number = divmod(place, len(PALETTE))
    return PALETTE[number], MARKERS[(number + again) % len(MARKERS)]


def luminance(color: str) -> float:
    """Return how light a colour is in greyscale, from 0 (black) to 1 (ITU-R BT.601)."""
    red, green, blue = to_rgb(color)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def looks_of(record: RunRecord) -> dict[str, Look]:
    """Return each treatment's look, those that are compared side by side.

    Colour and marker go by the treatment's place in the record and nothing else.
    """
    found = {
        treatment.name: Look(*appearance(place), label=treatment.label or treatment.name)
        for place, treatment in enumerate(record.treatments)
    }
    return {name: found[name] for name in side_by_side(record)}
