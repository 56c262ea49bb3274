"""Compression's part of the time that the chat service takes for sending."""

from __future__ import annotations

import pandas as pd

from perflab.analysis.methods.quantiles import across_trials
from perflab.analysis.trials.profiles import PERCENT, by_treatment, watched_names
from perflab.recordings import Run, published_value

PART = ["treatment", "deflate of send %", "low", "high", "published %", "n"]


def deflate_of_sending(run: Run) -> pd.DataFrame:
    """Return how much of the time of sending is compression, beside the chat study's number.

    One row per profiled treatment that compresses; columns: treatment (its label), ``deflate of
    send %`` (each trial's samples in ``deflate`` over those in ``send``; typical value over the
    valid trials) with its 95% interval (NaN where n is too small), ``published %``, n (trials).
    """
    rows = []
    for label, own in by_treatment(run):
        if not {"send", "deflate"} <= set(watched_names(own)):
            continue
        part = across_trials(PERCENT * own["profile_deflate_share"] / own["profile_send_share"])
        row = {"treatment": label, "deflate of send %": part.value}
        row |= {"low": part.low, "high": part.high, "published %": _published_percent()}
        rows.append({**row, "n": part.n})
    return pd.DataFrame(rows, columns=PART)


def _published_percent() -> float:
    """Return the share of compression in the study's time of sending, from its two times."""
    deflate_s, sending_s = (
        published_value("chat", "CPU", "sending, with deflate", measure)
        for measure in ("deflate_time", "sending_time")
    )
    return PERCENT * deflate_s / sending_s
