"""Requests under way over time in every trial, and when requests failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from perflab.figures.charts import Axis, Lines, Marks, Planes, treatment_panels
from perflab.figures.evidence import trials_shown
from perflab.figures.looks import PALETTE
from perflab.figures.view import View
from perflab.load.outcome import CUT_OFF
from perflab.recordings import Run

TITLE = "requests under way over time"
UNDER_WAY, FAILED = "under way", "failed"
COLUMNS = ["treatment", "trial_id", "what", "t_s", "value"]
STEPS = 200
PANEL_IN, LABEL_IN = 1.7, 2.9
ROOM = 1.12


def over_time_table(run: Run) -> pd.DataFrame:
    """Return how many requests were under way at instants of each trial, and when some failed.

    Time counts from the first request; ``value`` of a failure is how many had failed by then.
    """
    shown = trials_shown(run)
    names = dict(zip(shown["trial_id"], shown["treatment"], strict=True))
    requests = run.requests(None, list(names)) if names else pd.DataFrame()
    if requests.empty:
        return pd.DataFrame(columns=COLUMNS)
    rows = [
        {"treatment": names[str(trial)], "trial_id": str(trial), **row}
        for trial, own in requests.groupby("trial_id", sort=False)
        for row in _of_trial(own)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_trial(own: pd.DataFrame) -> Iterator[dict[str, Any]]:
    sent = own[(own["sent_ns"] > 0) & (own["done_ns"] > 0)]
    begin_ns, end_ns = int(own["planned_ns"].min()), int(own["done_ns"].max())
    instants = np.linspace(begin_ns, end_ns, STEPS)
    begun = np.searchsorted(np.sort(sent["sent_ns"]), instants, side="right")
    over = np.searchsorted(np.sort(sent["done_ns"]), instants, side="right")
    for at_ns, value in zip(instants, begun - over, strict=True):
        yield {"what": UNDER_WAY, "t_s": (at_ns - begin_ns) / 1e9, "value": float(value)}
    failed = own[(own["error"] != "") & ~own["error"].isin(CUT_OFF)]["done_ns"].sort_values()
    for number, at_ns in enumerate(failed, start=1):
        yield {"what": FAILED, "t_s": (at_ns - begin_ns) / 1e9, "value": float(number)}


CHART = Planes(
    TITLE,
    "A line is a trial: requests that were sent and had not their last byte. Crosses: requests that"
    " failed, as they add up. Of ramps, time counts from the first user.",
    layers=(
        Lines((UNDER_WAY,), unit="trial_id", color=PALETTE[0], how={"lw": 0.8, "alpha": 0.7},
              label=UNDER_WAY),
        Marks((FAILED,), "x", "failed so far", PALETTE[1], size=3),
    ),
    planes=treatment_panels(Axis("s", ends=(0, None)), Axis("requests", below=0.0)),
    height_in=2.1,
    further_in=1.7,
    empty="no trial",
)  # fmt: skip
STREAMS_OVER_TIME = View("streams_over_time", TITLE, over_time_table, CHART.draw)
