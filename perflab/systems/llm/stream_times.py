"""The time to the first chunk, and the gaps between chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Lines, Plane, Planes
from perflab.figures.origin import Page
from perflab.figures.plots.latency_ecdf import POOLED, curves
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.llm.users_at_failure import VERSION_STYLES, rungs_of

TIME_TITLE = "time to the first chunk, and gaps between chunks"
FIRST, GAP = "first chunk", "gap"
TIME_LABELS = {FIRST: "time to the first chunk, ms (log)", GAP: "gap between chunks, ms (log)"}
# The shares are denser in the tails.
SHARES = np.r_[0.002, 0.01, np.linspace(0.025, 0.975, 39), 0.99, 0.995, 0.999, 1.0]
THIN, THICK = "thin", "thick"
TIME_COLUMNS = ["family", "version", "what", "curve", "share", "ms"]
OF_REQUEST = ["trial_id", "worker", "user", "planned_ns"]
# The drawn gap of chunks that came in one read; a logarithmic axis has no 0.
LEAST_MS = 0.001
DASHES: dict[str, Any] = {"old": "-", "new": (0, (4, 1.5)), "raw": (0, (1.5, 1))}


def stream_times_table(run: Run) -> pd.DataFrame:
    """Return the quantiles of the time to the first chunk and of gaps, by version.

    They are of measured successes in valid trials. ``curve`` is a trial, or all trials of a
    treatment. Chunks that came in one read have a gap of 0, drawn at a microsecond.
    """
    times, rungs = _times(run), rungs_of(run)
    order = {name: place for place, name in enumerate(rungs["treatment"])}
    times = times.sort_values("treatment", key=lambda group: group.map(order), kind="stable")
    parts = [
        _curve(times_of, family=family, version=version, what=what, curve=curve)
        for (family, version, what), group in times.groupby(
            ["family", "version", "what"], sort=False
        )
        for curve, times_of in curves(group, "ms")
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=TIME_COLUMNS)


def _times(run: Run) -> pd.DataFrame:
    requests, chunks = run.requests(), run.table("chunks")
    columns = ["treatment", "family", "version", "what", "trial_id", "ms"]
    if chunks.empty:
        return pd.DataFrame(columns=columns)
    successes = requests[(requests["stage"] == "measure") & (requests["error"] == "")]
    arrivals = chunks[~chunks["is_end"]].merge(
        successes[[*OF_REQUEST, "treatment"]], on=OF_REQUEST, suffixes=("_chunk", "")
    )
    arrivals = arrivals.sort_values([*OF_REQUEST, "number"], kind="stable")
    is_first = arrivals["number"] == 0
    previous_ns = arrivals["planned_ns"].where(is_first, arrivals["at_ns"].shift())
    timed = arrivals.assign(
        ms=(arrivals["at_ns"] - previous_ns) / 1e6, what=np.where(is_first, FIRST, GAP)
    )
    return timed.merge(rungs_of(run), on="treatment")[columns]


def _curve(values: pd.Series[float], **labels: object) -> pd.DataFrame:
    quantiles = np.quantile(values.to_numpy(float), SHARES, method="inverted_cdf")
    columns = {**labels, "share": SHARES, "ms": np.maximum(quantiles, LEAST_MS)}
    return pd.DataFrame(columns)[TIME_COLUMNS]


def draw_stream_times(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row of two panels for each kind of load."""
    panel, weight = table["family"] + ": " + table["what"], _weight(table)
    table = table.assign(panel=panel, percent=100 * table["share"], what=weight)
    style: dict[str, Any] = {"by": "version", "unit": "curve"}
    thin, share = {"lw": 0.5, "alpha": 0.45}, Axis("came by then, %", ends=(-2, 103))
    chart = Planes(
        TIME_TITLE,
        "A line is as high as the share that came within a time; further left is sooner. The first"
        " chunk counts from the planned instant. Thin: valid trials; thick: all of a version, where"
        f" there are several. Gaps of 0 (one read brought both chunks) stand at {LEAST_MS:g} ms.",
        layers=(
            Lines((THIN,), styles=VERSION_STYLES, how=thin, keyed=False, **style),
            *(
                Lines(
                    (THICK,),
                    styles={name: of_version},
                    how={"lw": 1.8, "ls": DASHES[name]},
                    **style,
                )
                for name, of_version in VERSION_STYLES.items()
            ),
        ),
        planes={
            f"{family}: {what}": Plane(Axis(label, log=True), share, f"{family}: {what}")
            for family in table["family"].unique()
            for what, label in TIME_LABELS.items()
        },
        panel="panel",
        x="ms",
        y="percent",
        height_in=2.4,
        further_in=1.9,
        share_x="col",
        share_y=True,
    )
    return chart.draw(table, page)


def _weight(table: pd.DataFrame) -> np.ndarray:
    """Return which curves are thick: those of all trials, and of the only trial of a version."""
    lines = table.groupby(["family", "version", "what"])["curve"]
    return np.where((table["curve"] == POOLED) | (lines.transform("nunique") == 1), THICK, THIN)


STREAM_TIMES = View(
    "stream_times", TIME_TITLE, stream_times_table, draw_stream_times,
    suits=lambda run: not {"stream", "tools"}.isdisjoint(run.record.factors.get("kind", ())),
)  # fmt: skip
