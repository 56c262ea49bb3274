"""The parts of a response time.

They add up to the response time:

==================  ======================================================================
part                what it is
==================  ======================================================================
generator lag       started - planned: a delay of the generator
connection wait     sent - started: waiting for, or making, a connection
queue and other     service time - app: accept queue, network, and the server outside of
                    the application (no ASGI application can measure these)
<phase>             what the service reports in Server-Timing
unaccounted app     app - the sum of the other phases
==================  ======================================================================

Without a reported ``app``, all service time beyond the phases is "queue and other".
"""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from perflab.errors import AnalysisError
from perflab.recordings.columns import PHASE_COLUMN
from perflab.statistics.in_words import as_share, counted, number, signed
from perflab.statistics.quantiles import across_trials, t_interval

APP = "app"
PART_COLUMNS = ["treatment", "part", "mean_ms", "share", "trials", "requests"]
CHANGE_COLUMNS = ["part", "change_ms", "low_ms", "high_ms", "n"]
# Quantiles of a trial's response times between which a request belongs to a band.
BANDS = {"all": (0.0, 1.0), "median": (0.45, 0.55), "tail": (0.95, 1.0)}
# Other phases keep the names that the service reports (Server-Timing).
SPELT_OUT = {
    "request": "read and check request",
    "threadpool": "thread-pool wait",
    "pool": "connection-pool wait",
    "execute": "execute statement",
    "release": "give connection back",
    "answer": "back to event loop, answer",
    "queue and other": "accept queue, network, server",
    "unaccounted app": "rest of the application",
}
# The bands of `decompose` by their names for a load.
REQUEST_BANDS = {"all": "all", "around the median": "median", "slowest 5%": "tail"}
QUEUE = "queue and other"
# What the client sees of a service that reports no parts of its time.
OUTSIDE = {"generator lag", "connection wait", QUEUE}
NO_PARTS = "the service reports no parts of its time (Server-Timing)"
INSTANTS = ("planned_ns", "started_ns", "sent_ns", "done_ns")
CODED = ("stage", "error")


def part_words(part: str) -> str:
    """Return the words for a part of :func:`decompose` in sentences, tables and figures."""
    return SPELT_OUT.get(part, part)


def decompose(requests: pd.DataFrame, band: str = "all") -> pd.DataFrame:
    """Return the time that every part typically takes, per treatment; only successes count.

    ``band`` chooses requests of each trial: "all", those around its "median" (45th to 55th
    percentile of response time), or its "tail" (the slowest 5%); AnalysisError for another.

    Columns: treatment, part, mean_ms (mean over trials of the trials' means, in proportion so that
    the parts of a treatment add up to its typical mean response time, as tables have it), share,
    trials, requests. A phase that a treatment never reports has no row.
    """
    good = _of_band(requests, band)
    rows = []
    for treatment, of_treatment in good.groupby("treatment", sort=False):
        parts = split(of_treatment)
        by_trial = parts.groupby(of_treatment["trial_id"])
        of_trials = by_trial.mean()
        means = of_trials.mean()
        if (total := float(means.sum())) > 0:
            means *= across_trials(of_trials.sum(axis=1)).value / total
        whole = float(means.sum())
        rows += [
            {
                "treatment": treatment,
                "part": part,
                "mean_ms": float(means[part]),
                "share": float(means[part]) / whole if whole > 0 else math.nan,
                "trials": by_trial.ngroups,
                "requests": len(of_treatment),
            }
            for part in parts.columns
        ]
    return pd.DataFrame(rows, columns=PART_COLUMNS)


def _of_band(requests: pd.DataFrame, band: str) -> pd.DataFrame:
    if band not in BANDS:
        raise AnalysisError(f"no band '{band}'; there are {', '.join(BANDS)}")
    good = requests[(requests["error"] == "") & (requests["sent_ns"] > 0)]
    if band == "all" or good.empty:
        return good
    response = good["done_ns"] - good["planned_ns"]
    trials = response.groupby(good["trial_id"])
    low, high = (trials.transform("quantile", share) for share in BANDS[band])
    return good[(response >= low) & (response <= high)]


def change(requests: pd.DataFrame, before: str, after: str) -> pd.DataFrame:
    """Return how each part changes from one treatment to another, paired by block.

    A row per part, the largest change first: change_ms (mean over blocks) with its t interval over
    blocks, low_ms to high_ms (NaN below 2), n (blocks). AnalysisError if no block has a success of
    both treatments.
    """
    good = _of_band(requests, "all")
    sides = []
    for name in (before, after):
        of_treatment = good[good["treatment"] == name]
        sides.append(split(of_treatment).groupby(of_treatment["block"]).mean())
    parts = list(dict.fromkeys([*sides[0].columns, *sides[1].columns]))
    blocks = sides[0].index.intersection(sides[1].index)
    if not len(blocks):
        raise AnalysisError(f"no block has successful requests of both '{before}' and '{after}'")
    first, second = (side.reindex(index=blocks, columns=parts).fillna(0.0) for side in sides)
    differences = second - first
    rows = [
        (part, float(of_part.mean()), *t_interval(of_part.to_numpy(float)), len(blocks))
        for part, of_part in differences.items()
    ]
    table = pd.DataFrame(rows, columns=CHANGE_COLUMNS)
    return table.sort_values("change_ms", key=abs, ascending=False, ignore_index=True)


def change_sentence(table: pd.DataFrame, before: str, after: str) -> str:
    """Return a sentence that names the part behind a change, from :func:`change`.

    The sentence names only a part whose interval excludes 0, and says where a service reports none.
    """
    whole = float(table["change_ms"].sum())
    blocks = counted(int(table["n"].max()), "block")
    words = f"from {before} to {after} the mean response time changes by {signed(whole)} ms"
    certain = table[(table["low_ms"] > 0) | (table["high_ms"] < 0)]
    same_way = certain[certain["change_ms"] * whole > 0]
    if same_way.empty:
        return f"{words}; no single part is certain to have changed ({blocks})."
    top = same_way.iloc[0]
    if top["part"] == QUEUE and OUTSIDE.issuperset(table["part"]):
        return f"{words}; {NO_PARTS}."
    least, middle, most = (signed(float(top[name])) for name in ("low_ms", "change_ms", "high_ms"))
    return (
        f"{words}; the part that changes most with it is {part_words(top['part'])}: {middle} ms "
        f"[{least}, {most}] (95% interval, {blocks})."
    )


def split(requests: pd.DataFrame) -> pd.DataFrame:
    """Return the parts of each request in ms; a row adds up to its response time exactly."""
    service_ms = (requests["done_ns"] - requests["sent_ns"]) / 1e6
    reported = {
        match.group(1): requests[name].astype(float)
        for name in requests.columns
        if (match := PHASE_COLUMN.fullmatch(name)) and requests[name].notna().any()
    }
    app = reported.pop(APP, None)
    phases = pd.DataFrame(reported, index=requests.index).fillna(0.0)
    inside = phases.sum(axis=1)
    # If a request did not report the whole, only its phases are known to be inside.
    within = inside if app is None else app.fillna(inside)
    parts = {
        "generator lag": (requests["started_ns"] - requests["planned_ns"]) / 1e6,
        "connection wait": (requests["sent_ns"] - requests["started_ns"]) / 1e6,
        QUEUE: service_ms - within,
        **{str(name): phases[name] for name in phases.columns},
    }
    if app is not None:
        parts["unaccounted app"] = within - inside
    return pd.DataFrame(parts)


def largest_phase(table: pd.DataFrame, treatment: str, label: str) -> str:
    """Return a sentence that names the part with the most time in a treatment."""
    parts = table[(table["treatment"] == treatment) & table["mean_ms"].notna()]
    if parts.empty or not (parts["mean_ms"] > 0).any():
        return f"{label}: no successful request says where its time went."
    top = parts.iloc[int(parts["mean_ms"].to_numpy().argmax())]
    if top["part"] == QUEUE and OUTSIDE.issuperset(parts["part"]):
        return f"{label}: {NO_PARTS}."
    spent = f"{number(top['mean_ms'])} of {number(parts['mean_ms'].sum())} ms"
    return (
        f"{label}: the largest part of the response time is {part_words(top['part'])}, typically "
        f"{spent} ({as_share(top['share'])}; {counted(int(top['trials']), 'trial')}, "
        f"{counted(int(top['requests']), 'request')})."
    )


def parts_of_load(path: Path) -> pd.DataFrame:
    """Return mean parts of the response times in a load's file of requests, in ms.

    A row per part; a column for all successes of the measured stage, for those around the median,
    and for the slowest 5%. AnalysisError where the file cannot be read or lacks a column.
    """
    measured = _measured(path)
    load = measured[measured["error"] == ""].assign(treatment="load", trial_id="load")
    bands = {
        words: decompose(load, band).set_index("part")["mean_ms"]
        for words, band in REQUEST_BANDS.items()
    }
    return pd.DataFrame(bands)


def _measured(path: Path) -> pd.DataFrame:
    try:
        names = pq.read_schema(path).names
        if missing := [name for name in (*INSTANTS, *CODED) if name not in names]:
            raise AnalysisError(f"{path}: has no column {', '.join(missing)}")
        phases = [name for name in names if PHASE_COLUMN.fullmatch(name)]
        table = pq.read_table(
            path,
            columns=[*INSTANTS, *CODED, *phases],
            read_dictionary=list(CODED),
            filters=[("stage", "=", "measure")],
        )
        measured: pd.DataFrame = table.to_pandas()
    except (OSError, pa.ArrowException) as error:
        raise AnalysisError(f"{path}: cannot be read: {error}") from None
    return measured
