"""How each treatment appears in every figure of a run, and which of them are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pandas as pd
from matplotlib.colors import to_rgb

from perflab.figures.theme import PALETTE as PALETTE
from perflab.recordings import ContrastPair, RunRecord

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


def in_order(table: pd.DataFrame, treatments: Iterable[str]) -> pd.DataFrame:
    """Return the rows of a table in the order of their treatments, else as they stand."""
    place = table["treatment"].map({name: n for n, name in enumerate(treatments)})
    return table.iloc[place.argsort(kind="stable")].reset_index(drop=True)


def compared_pairs(record: RunRecord) -> list[tuple[str, str]]:
    """Return every pair of treatments that some claim of the run compares, each pair once.

    Where a claim takes several treatments a side, those that are alike in all other factors.
    """
    found: dict[frozenset[str], tuple[str, str]] = {}
    for contrast in record.contrasts:
        if contrast.not_testable:
            continue
        for sides in filter(None, (contrast, contrast.interaction)):
            for pair in _matched(record, sides):
                found.setdefault(frozenset(pair), pair)
    return list(found.values())


def _matched(record: RunRecord, sides: ContrastPair) -> Iterator[tuple[str, str]]:
    above, below = (record.selected(each) for each in (sides.numerator, sides.denominator))
    varied = {*sides.numerator, *sides.denominator}
    rest = {
        item.name: {factor: level for factor, level in item.levels.items() if factor not in varied}
        for item in record.treatments
    }
    alone = len(above) == len(below) == 1
    for one in above:
        yield from ((one, other) for other in below if alone or rest[one] == rest[other])


def side_by_side(record: RunRecord) -> list[str]:
    """Return the treatments' names, each followed by one it is compared with where it can be.

    Otherwise in the order of the record.
    """
    partners: dict[str, list[str]] = {item.name: [] for item in record.treatments}
    for one, other in compared_pairs(record):
        partners[one].append(other)
        partners[other].append(one)
    recorded = list(partners)
    placed: dict[str, None] = {}
    waiting = recorded[::-1]
    while waiting:
        name = waiting.pop()
        if name not in placed:
            placed[name] = None
            waiting += sorted(partners[name], key=recorded.index, reverse=True)
    return list(placed)
