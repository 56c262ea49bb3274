"""New over old with and without pacing, and by what factor the one without misleads."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.evaluation import Finding, evaluate
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Lines, Plane, Planes, RowChart, Rules
from perflab.figures.origin import Page
from perflab.figures.plots.effect_rows import limits, marks
from perflab.figures.plots.effect_rows import ratio_number as ratio_words
from perflab.figures.points import ARROW
from perflab.figures.theme import INK, PALETTE, Look
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.statistics.in_words import number
from perflab.systems.llm.claims import CORES, MEAN, RATE, WORDS
from perflab.systems.llm.figures.costs import VERSION_LOOKS, rungs_of

TIME_TITLE = "time to the first chunk, and gaps between chunks"
FIRST, GAP = "first chunk", "gap"
LABELS = {FIRST: "time to the first chunk, ms (log)", GAP: "gap between chunks, ms (log)"}
# Denser where the tails are.
SHARES = np.r_[0.002, 0.01, np.linspace(0.025, 0.975, 39), 0.99, 0.995, 0.999, 1.0]
POOLED = "all trials"
THIN, THICK = "thin", "thick"
TIME_COLUMNS = ["family", "version", "what", "curve", "share", "ms"]
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
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=TIME_COLUMNS)


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
    return pd.DataFrame({**named, "share": SHARES, "ms": np.maximum(found, LEAST_MS)})[TIME_COLUMNS]


def draw_stream_times(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row of two panels for each kind of load."""
    panel, weight = table["family"] + ": " + table["what"], _weight(table)
    table = table.assign(panel=panel, percent=100 * table["share"], what=weight)
    how: dict[str, Any] = {"by": "version", "unit": "curve"}
    thin = {"lw": 0.5, "alpha": 0.45}
    chart = Planes(
        TIME_TITLE,
        "A line is as high as the share that came within a time; further left is sooner. The first"
        " chunk counts from the planned instant. Thin: valid trials; thick: all of a version, where"
        f" there are several. Gaps of 0 (one read brought both chunks) stand at {LEAST_MS:g} ms.",
        layers=(
            Lines((THIN,), looks=VERSION_LOOKS, how=thin, keyed=False, **how),
            *(
                Lines((THICK,), looks={name: look}, how={"lw": 1.8, "ls": DASHES[name]}, **how)
                for name, look in VERSION_LOOKS.items()
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


STREAM_TIMES = View(
    "stream_times", TIME_TITLE, stream_times_table, draw_stream_times, suits=has_streams
)


PACING_TITLE = "new over old, with and without pacing"
PACED, UNPACED, FACTOR = "constant cycle", "no pacing", "factor between them"
LOOKS = {
    PACED: Look(PALETTE[0], "o", PACED),
    UNPACED: Look(PALETTE[1], "s", UNPACED),
    FACTOR: Look(PALETTE[3], "D", FACTOR),
}
RESPONSES = (RATE, CORES, MEAN)
PACING_COLUMNS = ["response", "what", "ratio", "low", "high", "n", "verdict"]
SAME = "same"
ROW_IN = 0.42
LEAST = 0.1
WIDTH_IN = 3.3


def pacing_table(run: Run) -> pd.DataFrame:
    """Return the ratio new over old by response, in both loads, and the factor between them.

    With 95% intervals, blocks and verdicts as everywhere (:mod:`perflab.analysis`). Requests per
    second have no factor: with a constant cycle the load sets them.
    """
    told = [
        {
            "response": WORDS[each.contrast.response],
            "what": what,
            "ratio": each.effect.estimate,
            "low": each.effect.low,
            "high": each.effect.high,
            "n": each.effect.n,
            "verdict": str(each.verdict),
        }
        for each in evaluate(run)
        if (what := _what(each)) and each.contrast.response in RESPONSES and each.effect
    ]
    return pd.DataFrame(told, columns=PACING_COLUMNS)


def _what(finding: Finding) -> str:
    """Return which of the three a finding is; empty of any other."""
    if finding.contrast.interaction is not None:
        return FACTOR if finding.contrast.name.startswith("pacing x") else ""
    named = {"paced_new": PACED, "unpaced_new": UNPACED}
    return named.get(finding.contrast.numerator.get("rung", ""), "")


def draw_pacing(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per response and load, the numbers and the verdict at the right."""
    ends = table[["low", "high"]].to_numpy(float).ravel()
    low, high = limits(np.log(table["ratio"]), np.log(ends[ends > 0]), LEAST)
    within = (math.exp(low), math.exp(high))
    places = marks(*within, WIDTH_IN)
    ticks = {each: ratio_words(each) for each in places}
    chart = RowChart(
        PACING_TITLE,
        "The same two versions and the same fast model, once with a constant cycle and once without"
        " pacing. Bars: 95% intervals over blocks. The factor is the ratio without pacing over the"
        f" one with it: 1 would say that pacing changes nothing. {ARROW}",
        layers=(
            Rules((SAME,), color=INK, ls="-"),
            Intervals((*LOOKS,), within=within, by="what", looks=LOOKS, size=5),
        ),
        panels={"": Axis("new over old (log)", log=True, ends=within, ticks=ticks)},
        row="row",
        value="ratio",
        labels=_labels,
        row_in=ROW_IN,
        said=_said,
    )
    same = pd.DataFrame([{"what": SAME, "ratio": 1.0}])
    rows = table.assign(row=table["response"] + ",\n" + table["what"])
    return chart.draw(pd.concat([rows, same], ignore_index=True), page)


def _labels(table: pd.DataFrame, _: Page) -> dict[Hashable, str]:
    """Return a row for each response in each load, in their order."""
    responses = table["response"].dropna().unique()
    names = [f"{response},\n{what}" for response in responses for what in LOOKS]
    return {name: name.replace("\n", " ") for name in names if name in set(table["row"])}


def _said(table: pd.DataFrame) -> dict[Hashable, str]:
    own = table[table["what"] != SAME].to_dict("records")
    return {row["row"]: f"{_interval(row)}\n{row['verdict']}" for row in own}


def _interval(row: Mapping[Hashable, Any]) -> str:
    if not math.isfinite(row["low"]):
        return f"{number(row['ratio'])}, n = {row['n']:.0f}"
    between = f"[{number(row['low'])}, {number(row['high'])}]"
    return f"{number(row['ratio'])} {between}, n = {row['n']:.0f}"


def has_both(run: Run) -> bool:
    """Return whether a run has versions with and without pacing."""
    rungs = {item.levels.get("rung") for item in run.record.treatments}
    return {"paced_new", "unpaced_new"} <= rungs


PACING_RATIOS = View("pacing_ratios", PACING_TITLE, pacing_table, draw_pacing, suits=has_both)
