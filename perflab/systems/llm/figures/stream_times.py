"""Time to the first chunk and gaps between chunks as distributions, version by version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Lines, Plane, Planes
from perflab.figures.page import Page
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.llm.figures.versions import LOOKS, rungs_of

TITLE = "time to the first chunk, and gaps between chunks"
FIRST, GAP = "first chunk", "gap"
LABELS = {FIRST: "time to the first chunk, ms (log)", GAP: "gap between chunks, ms (log)"}
# Denser where the tails are.
SHARES = np.r_[0.002, 0.01, np.linspace(0.025, 0.975, 39), 0.99, 0.995, 0.999, 1.0]
POOLED = "all trials"
THIN, THICK = "thin", "thick"
COLUMNS = ["family", "version", "what", "curve", "share", "ms"]
OF_REQUEST = ["trial_id", "worker", "user", "planned_ns"]
# Chunks that one read completed: there is no such time on a logarithmic axis.
LEAST_MS = 0.001
DASHES: dict[str, Any] = {"old": "-", "new": (0, (4, 1.5)), "raw": (0, (1.5, 1))}


def stream_times_table(run: Run) -> pd.DataFrame:
    """Return within which time each share of first chunks and of gaps came, by version.

    Of measured successes in valid trials. ``curve`` is a trial, or all trials of a treatment.
    Chunks that came in one read have a gap of 0, drawn at a microsecond.
    """
    times, rungs = _times(run), rungs_of(run)
    order = {name: place for place, name in enumerate(rungs["treatment"])}
    times = times.sort_values("treatment", key=lambda own: own.map(order), kind="stable")
    parts = [
        _curve(times_of, family=family, version=version, what=what, curve=curve)
        for (family, version, what), own in times.groupby(["family", "version", "what"], sort=False)
        for curve, times_of in _curves(own)
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)


def _times(run: Run) -> pd.DataFrame:
    requests, chunks = run.requests(), run.chunks()
    nothing = pd.DataFrame(columns=["treatment", "family", "version", "what", "trial_id", "ms"])
    if chunks.empty:
        return nothing
    good = requests[(requests["stage"] == "measure") & (requests["error"] == "")]
    own = chunks[~chunks["is_end"]].merge(good[[*OF_REQUEST, "treatment"]], on=OF_REQUEST,
                                          suffixes=("_chunk", ""))  # fmt: skip
    own = own.sort_values([*OF_REQUEST, "number"], kind="stable")
    is_first = own["number"] == 0
    before = own["planned_ns"].where(is_first, own["at_ns"].shift())
    timed = own.assign(ms=(own["at_ns"] - before) / 1e6, what=np.where(is_first, FIRST, GAP)).merge(
        rungs_of(run), on="treatment"
    )
    return timed[nothing.columns] if len(timed) else nothing


def _curves(own: pd.DataFrame) -> Iterator[tuple[str, pd.Series[float]]]:
    trials = own.groupby("trial_id", sort=False)["ms"]
    yield from ((str(name), values) for name, values in trials)
    if trials.ngroups > 1:
        yield POOLED, own["ms"]


def _curve(values: pd.Series[float], **named: object) -> pd.DataFrame:
    found = np.quantile(values.to_numpy(float), SHARES, method="inverted_cdf")
    return pd.DataFrame({**named, "share": SHARES, "ms": np.maximum(found, LEAST_MS)})[COLUMNS]


def draw_stream_times(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row of two panels for each kind of load."""
    panel, weight = table["family"] + ": " + table["what"], _weight(table)
    table = table.assign(panel=panel, percent=100 * table["share"], what=weight)
    how: dict[str, Any] = {"by": "version", "unit": "curve"}
    thin = {"lw": 0.5, "alpha": 0.45}
    chart = Planes(
        TITLE,
        "A line is as high as the share that came within a time; further left is sooner. The first"
        " chunk counts from the planned instant. Thin: valid trials; thick: all of a version, where"
        f" there are several. Gaps of 0 (one read brought both chunks) stand at {LEAST_MS:g} ms.",
        layers=(
            Lines((THIN,), looks=LOOKS, how=thin, keyed=False, **how),
            *(
                Lines((THICK,), looks={name: look}, how={"lw": 1.8, "ls": DASHES[name]}, **how)
                for name, look in LOOKS.items()
            ),
        ),
        planes=_planes,
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
    """Return which curves are thick: those of all trials, and of a version's only trial."""
    lines = table.groupby(["family", "version", "what"])["curve"]
    return np.where((table["curve"] == POOLED) | (lines.transform("nunique") == 1), THICK, THIN)


def _planes(table: pd.DataFrame, _: Page) -> dict[str, Plane]:
    share = Axis("came by then, %", ends=(-2, 103))
    return {
        f"{family}: {what}": Plane(Axis(label, log=True), share, f"{family}: {what}")
        for family in table["family"].unique()
        for what, label in LABELS.items()
    }


def has_streams(run: Run) -> bool:
    """Return whether answers of a run were streamed."""
    return any(item.levels.get("kind") in ("stream", "tools") for item in run.record.treatments)


STREAM_TIMES = View("stream_times", TITLE, stream_times_table, draw_stream_times, suits=has_streams)
