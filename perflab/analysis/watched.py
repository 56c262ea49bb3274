"""Watched functions of profiled trials: their part of the time, and compression's of sending.

The columns of the trials are taken, not the stacks: what was watched is said by the experiment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pandas as pd

from perflab.analysis.quantiles import across_trials
from perflab.recordings import Run, published

PERCENT = 100.0
SHARE = re.compile(r"profile_(.+)_share")
WATCHED = [
    "treatment", "watched", "share %", "share low", "share high", "us", "us low", "us high", "n",
]  # fmt: skip
PART = ["treatment", "deflate of send %", "low", "high", "published %", "n"]


def watched(run: Run) -> pd.DataFrame:
    """Return how much of the time every watched function takes, per profiled treatment.

    Columns: treatment (its label), watched (the name); ``share %`` of the samples with the
    function anywhere in their stack, and ``us`` of it per message delivered to a receiver: typical
    values over the valid trials with their 95% intervals (NaN where n is too small); n (trials).
    A function may hold another: shares do not add up.
    """
    rows = []
    for label, own in _profiled(run):
        for name in _names(own):
            share = across_trials(PERCENT * own[f"profile_{name}_share"])
            time = across_trials(own[f"profile_{name}_us_per_message"])
            row: dict[str, Any] = {"treatment": label, "watched": name}
            row |= {"share %": share.value, "share low": share.low, "share high": share.high}
            row |= {"us": time.value, "us low": time.low, "us high": time.high}
            rows.append({**row, "n": share.n})
    return pd.DataFrame(rows, columns=WATCHED)


def deflate_of_sending(run: Run) -> pd.DataFrame:
    """Return how much of the time of sending is compression, beside the chat study's number.

    One row per profiled treatment that compresses; columns: treatment (its label), ``deflate of
    send %`` (each trial's samples in ``deflate`` over those in ``send``; typical value over the
    valid trials) with its 95% interval (NaN where n is too small), ``published %``, n (trials).
    """
    rows = []
    for label, own in _profiled(run):
        if not {"send", "deflate"} <= set(_names(own)):
            continue
        part = across_trials(PERCENT * own["profile_deflate_share"] / own["profile_send_share"])
        row = {"treatment": label, "deflate of send %": part.value}
        row |= {"low": part.low, "high": part.high, "published %": _published_percent()}
        rows.append({**row, "n": part.n})
    return pd.DataFrame(rows, columns=PART)


def _profiled(run: Run) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield every treatment's label and its valid trials, in the order of the record."""
    trials = run.valid_trials()
    for treatment in run.record.treatments:
        yield treatment.label or treatment.name, trials[trials["treatment"] == treatment.name]


def _names(own: pd.DataFrame) -> list[str]:
    """Return what was watched in some of these trials."""
    found = [match[1] for column in own.columns if (match := SHARE.fullmatch(str(column)))]
    return [name for name in found if own[f"profile_{name}_share"].notna().any()]


def _published_percent() -> float:
    """Return the share of compression in the study's time of sending, from its two times."""
    table = published("chat")
    own = table[table["scenario"] == "sending, with deflate"].set_index("measure")["value"]
    return PERCENT * float(own["deflate_time"]) / float(own["sending_time"])
