"""Why a variant differs: what its accounts say, in lines under the answer."""

from __future__ import annotations

import math
from typing import Any

from perflab.analysis.accounts.causes import Cause, Causes, causes_of
from perflab.analysis.accounts.entries import Entry
from perflab.recordings import Run
from perflab.reports.cells import json_number
from perflab.statistics.in_words import number, signed

# From this share on, what nothing explains is told.
MUCH = 0.25
MOST_LINES = 3
WHY = "why: "


def why_lines(run: Run, new: str, old: str) -> list[str]:
    """Return why a treatment differs from another in one to three lines; none if not measured."""
    causes = causes_of(run, new, old)
    if causes is None:
        return []
    unread = f"not read: {'; '.join(causes.unread)}" if causes.unread else ""
    at_the_end = [*filter(None, [causes.only_loaded, unread])]
    first, *others = [*_lines(causes, MOST_LINES - len(at_the_end)), *at_the_end]
    return [f"{WHY}{first}", *(f"{'':{len(WHY)}}{line}" for line in others)]


def why_of_pairs(run: Run) -> list[str]:
    """Return why the treatments of each claim differ, in a line for each pair; none if unknown."""
    labels = run.record.labels
    return [
        f"{labels[new]} against {labels[old]}, {lines[0]}"
        for new, old in run.record.compared_pairs()
        if (lines := why_lines(run, new, old))
    ]


def _lines(causes: Causes, most: int) -> list[str]:
    """Return the causes, the largest first, and what they leave if that is much."""
    if not causes.causes:
        return [_nothing(causes)]
    whole, of_what = _whole(causes)
    of_whole = f"{signed(whole.change)} {of_what}"
    lines = [
        cause.text
        if math.isnan(cause.explains_ms)
        else f"{cause.text} ({signed(cause.explains_ms)} of {of_whole})"
        for cause in causes.causes
    ]
    left = whole.change - sum(
        cause.explains_ms for cause in causes.causes if not math.isnan(cause.explains_ms)
    )
    if abs(left) >= MUCH * abs(whole.change):
        lines.append(f"{signed(left)} of {of_whole} are in none of these")
    return lines[:most]


def _whole(causes: Causes) -> tuple[Entry, str]:
    """Return the difference that is explained, and its unit."""
    if causes.response.differs or not causes.cpu.differs:
        return causes.response, "ms"
    return causes.cpu, "ms of CPU"


def _nothing(causes: Causes) -> str:
    one = causes.response
    change = f"{signed(one.change)} ms [{number(one.low)}, {number(one.high)}]"
    found = f"nothing stands out in {change}"
    if not one.differs:
        found = f"no difference is certain where requests come one at a time: {change}"
    if math.isnan(causes.visible_ms):
        return found
    return f"{found}; an entry above {number(causes.visible_ms)} ms would have been seen"


def why_data(run: Run, new: str, old: str) -> dict[str, Any] | None:
    """Return all entries of a pair's accounts as data; None if not measured."""
    causes = causes_of(run, new, old)
    if causes is None:
        return None
    tables = {"times_ms": causes.times, "metrics_ms": causes.metrics, "counts": causes.counts}
    return {
        "response_ms": _known(causes.response),
        "cpu_ms": _known(causes.cpu),
        "causes": [_known(cause) for cause in causes.causes],
        "only_loaded": causes.only_loaded,
        "unread": causes.unread,
        **{
            name: [
                {"kind": kind, "name": entry, **_known(one)} for (kind, entry), one in of.items()
            ]
            for name, of in tables.items()
        },
    }


def _known(one: Entry | Cause) -> dict[str, Any]:
    """Return the fields of an entry or a cause."""
    return {name: json_number(value) for name, value in vars(one).items()}
