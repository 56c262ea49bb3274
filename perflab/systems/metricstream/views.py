"""The parts of a request, success by phase, and throughput over users; the views of a run."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd

from perflab.figures import EFFECT, IN_FLIGHT, LATENCY_CPU, THROUGHPUT, TIME_BREAKDOWN
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import (
    Axis,
    Intervals,
    Marks,
    Plane,
    Planes,
    Points,
    RowChart,
    Stack,
    Texts,
    Typical,
)
from perflab.figures.origin import Page, in_words, trials_shown, typical_rows
from perflab.figures.theme import PALETTE, PUBLISHED_COLOR, Style
from perflab.figures.view import View, varies
from perflab.recordings import Run, published, published_value
from perflab.statistics.in_words import as_share
from perflab.statistics.quantiles import t_interval
from perflab.systems.metricstream.connection_cost import PARTS
from perflab.systems.metricstream.limited_by import CLIENT_OR_SERVER
from perflab.systems.metricstream.rungs import LADDER, OTHERS, PHASES_TABLE, STUDY

PARTS_TITLE = "what a request consists of, on the client's clock"
MEASURED, PUBLISHED, WHOLE_REQUEST = "measured", "published", "whole"
CONNECTING = "connecting"
# The texts in place of a missing bar.
NO_TRIAL, NO_POST = "no valid trial", "no answered post of the lab's client"
COLORS = {
    "connect": "#101840",
    "send": "#99CCEE",
    "wait": "#117766",
    "receive": "#F0DD88",
    "close": "#DC668A",
}
# The study's name of each part that it has, too.
STATED = {"connect": "connection_setup", "wait": "processing", "close": "teardown"}
SHARES = "shares of one request, as stated"
# The end of each published range in a bar: with the least connecting, or the most.
ENDS = {
    "published: least connecting": {"connect": "low", "wait": "high", "close": "high"},
    "published: most connecting": {"connect": "high", "wait": "low", "close": "low"},
}
PARTS_COLUMNS = ["what", "treatment", "part", "value", "low", "high", "n"]
TICKS = {share / 5: f"{share / 5:.0%}" for share in range(6)}
SUCCESS_TITLE = "success by phase, beside what was published"
RESPONSE = "success_share"
TRIAL, TYPICAL, BEFORE, AFTER = "trial", "typical", "published before", "published after"
MEASURES = {"success_before": BEFORE, "success_after": AFTER, "success": AFTER}
SUCCESS_COLUMNS = ["what", "treatment", "state", "value", "low", "high", "n"]
STYLES = {TRIAL: Style(PALETTE[0], "o", "trial")}
MARKS = {BEFORE: ("<", "published before the phase"), AFTER: ("D", "published after it")}
THROUGHPUT_TITLE = "throughput over users, and what the published limit would need"
NEEDED, LIMITED = "needed", "limited"
PREFIX = "users_"
THROUGHPUT_COLUMNS = ["what", "users", "state", "value", "words"]


def parts_table(run: Run) -> pd.DataFrame:
    """Return the share of every part by treatment, then the published ones.

    ``value`` is the mean over the valid trials, for ``connect`` with its 95% t interval and the
    number of trials; for ``whole`` it is the parts' sum in ms. A treatment without a valid trial
    has one row that says so. There are no rows if no trial has parts.
    """
    valid = run.valid_trials()
    if valid.empty or "part_connect_share" not in valid:
        return pd.DataFrame(columns=PARTS_COLUMNS)
    rows: list[dict[str, Any]] = []
    # Trials with another load generator have no posts of the lab's own.
    with_posts = valid.dropna(subset="part_connect_ms")
    for name, trials in with_posts.groupby("treatment", sort=False):
        whole_ms = trials[[f"part_{part}_ms" for part in PARTS]].sum(axis=1, skipna=False).mean()
        rows += [_share(str(name), part, trials[f"part_{part}_share"]) for part in PARTS]
        rows.append({"what": MEASURED, "treatment": name, "part": WHOLE_REQUEST, "value": whole_ms})
    rows += [
        {"what": NO_TRIAL, "treatment": name, "part": "", "n": 0}
        for name, number in run.valid_counts().items()
        if not number
    ]
    return pd.DataFrame([*rows, *_parts_published()], columns=PARTS_COLUMNS)


def _share(name: str, part: str, of_trials: pd.Series[float]) -> dict[str, Any]:
    row = {"what": MEASURED, "treatment": name, "part": part, "value": float(of_trials.mean())}
    if part != "connect":
        return row
    low, high = t_interval(of_trials.to_numpy(float))
    # Student's interval over few trials may reach beyond 0 or 1.
    return {**row, "low": max(low, 0.0), "high": min(high, 1.0), "n": len(of_trials)}


def _parts_published() -> Iterator[dict[str, Any]]:
    for name, ends in ENDS.items():
        for part, end in ends.items():
            share = published_value(STUDY, OTHERS, SHARES, f"{STATED[part]}_{end}") / 100
            yield {"what": PUBLISHED, "treatment": name, "part": part, "value": share}


def draw_parts(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a stacked bar per treatment, and one for either end of the published ranges."""
    connecting = table[(table["part"] == "connect") & (table["what"] == MEASURED)]
    without = (table["what"] == NO_TRIAL).map({True: NO_TRIAL, False: ""})
    parts = [table.assign(words=without), connecting.assign(what=CONNECTING, part="", words="")]
    return PARTS_CHART.draw(pd.concat(parts, ignore_index=True), page)


def _labels(table: pd.DataFrame, page: Page) -> dict[Hashable, str]:
    labels: dict[Hashable, str] = {name: style.label for name, style in page.styles.items()}
    return labels | {name: name for name in ENDS if name in set(table["treatment"])}


def _part_words(part: str) -> str:
    if part == "send":
        return "send, or wait for a free connection"
    return f"{part} (published: {STATED[part].replace('_', ' ')})" if part in STATED else part


def _parts_said(table: pd.DataFrame) -> dict[Hashable, str]:
    """Return the shares of connecting with their intervals, and the sums of all parts."""
    wholes = table[table["part"] == WHOLE_REQUEST].set_index("treatment")["value"]
    connecting = table[table["what"] == CONNECTING].to_dict("records")
    return {row["treatment"]: _numbers(row, wholes[row["treatment"]]) for row in connecting}


def _numbers(row: Mapping[Hashable, Any], whole_ms: float) -> str:
    has_interval = math.isfinite(row["low"])
    interval = (
        f" [{as_share(row['low'], 1)}, {as_share(row['high'], 1)}]"
        if has_interval
        else ", no interval"
    )
    return f"connect {as_share(row['value'], 1)}{interval}\n{whole_ms:.3g} ms, n = {row['n']:.0f}"


PARTS_CHART = RowChart(
    PARTS_TITLE,
    "Mean shares of valid trials, successful requests. In numbers: share of connecting with its 95%"
    " t interval over trials (drawn above the bar), and the parts' sum. Published are ranges, of"
    " another machine, client and load; their upper ends exceed 100%.",
    layers=(
        Stack(COLORS, words="{:.0%}".format, labels={part: _part_words(part) for part in COLORS}),
        Intervals((CONNECTING,), at=-0.37, within=(0.0, 1.0), size=0),
        Texts((NO_TRIAL,)),
    ),
    panels={"": Axis("share of a request's time", ends=(0, 1.12), ticks=TICKS)},
    labels=_labels,
    row_in=0.36,
    said=_parts_said,
    nothing=NO_POST,
)
LIFE_CYCLE_PARTS = View(
    "life_cycle_parts",
    PARTS_TITLE,
    parts_table,
    draw_parts,
    varies("rung", "connection", "keep_alive"),
)


def success_table(run: Run) -> pd.DataFrame:
    """Return the success of every trial in %, the typical values, and the published ones.

    ``typical`` has its 95% interval over the valid trials, ``low`` to ``high``, and their number.
    """
    trials = trials_shown(run)
    if trials.empty or RESPONSE not in trials:
        return pd.DataFrame(columns=SUCCESS_COLUMNS)
    points = trials[["treatment", "state"]].assign(what=TRIAL, value=100 * trials[RESPONSE])
    typical = typical_rows(run, RESPONSE).assign(what=TYPICAL)
    typical[["value", "low", "high"]] = 100 * typical[["value", "low", "high"]].astype(float)
    treatment_of = {treatment.levels["rung"]: treatment.name for treatment in run.record.treatments}
    parts = [points, typical, pd.DataFrame(_success_published(treatment_of))]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return table.reindex(columns=SUCCESS_COLUMNS)


def _success_published(treatment_of: dict[str, str]) -> list[dict[str, Any]]:
    table = published(STUDY)
    rows = table[(table["place"] == PHASES_TABLE) & table["measure"].isin(MEASURES)]
    return [
        {"what": MEASURES[row["measure"]], "treatment": treatment_of[rung], "value": row["value"]}
        for row in rows.to_dict("records")
        if (rung := row["scenario"].partition(":")[0].replace(" ", "_")) in treatment_of
    ]


def _success_said(table: pd.DataFrame) -> dict[Hashable, str]:
    typical = table[table["what"] == TYPICAL].to_dict("records")
    words = {
        row["treatment"]: in_words(row, form="{:.4g}".format).replace("\n", " ", 1)
        for row in typical
    }
    return {treatment: text.replace(" ", "% ", 1) for treatment, text in words.items()}


SUCCESS_CHART = RowChart(
    SUCCESS_TITLE,
    "Success here: an answer of 202 within the time-out, of all requests planned. The study does"
    " not define its own, and its phases do not chain: its numbers lie beside these, and are"
    " compared with nothing. In numbers: typical value of the valid trials with its 95% interval"
    " (hollow points: refused trials).",
    layers=(
        Points(styles=STYLES, at=-0.12, how={"s": 18}),
        Typical(of=(TYPICAL,), within=(0.0, 100.0), at=0.12),
        *(
            Marks((what,), shape, label, color=PUBLISHED_COLOR, hollow=True, size=5.5, at=0.12)
            for what, (shape, label) in MARKS.items()
        ),
    ),
    panels={"": Axis("success, % of the requests that were planned", ends=(-2, 104))},
    row_in=0.46,
    said=_success_said,
)
SUCCESS_BY_PHASE = View(
    "success_by_phase", SUCCESS_TITLE, success_table, SUCCESS_CHART.draw,
    suits=lambda run: not set(LADDER.sets["phases"]).isdisjoint(run.record.factors.get("rung", ())),
)  # fmt: skip


def clients_table(run: Run) -> pd.DataFrame:
    """Return throughput by users of every trial, and sentences on the published limit.

    ``needed``: how many cores the published 374,600/s would take at the server's own CPU time for
    a request (the median over valid trials). ``limited``: how many CPUs the server could use.
    """
    trials = trials_shown(run)
    rows = trials[trials.get("factor_rung", pd.Series(dtype=str)).str.startswith(PREFIX)]
    if rows.empty or "throughput_rps" not in rows:
        return pd.DataFrame(columns=THROUGHPUT_COLUMNS)
    users = rows["factor_rung"].str.removeprefix(PREFIX).astype(float)
    points = pd.DataFrame(
        {"what": TRIAL, "users": users, "state": rows["state"], "value": rows["throughput_rps"]}
    )
    valid = rows[rows["state"] == "valid"]
    parts = [points, pd.DataFrame(_of_limits(run, valid))]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return table.reindex(columns=THROUGHPUT_COLUMNS)


def _of_limits(run: Run, valid: pd.DataFrame) -> Iterator[dict[str, Any]]:
    request_us = float(valid["server_cpu_us_per_request"].median()) if len(valid) else math.nan
    limit_rps = published_value(STUDY, OTHERS, "theoretical limit", "throughput")
    if math.isfinite(request_us):
        words = (
            f"the published limit of {limit_rps:,.0f}/s would take"
            f" {limit_rps * request_us / 1e6:,.3g} cores of this server alone ({request_us:.3g} us"
            f" of CPU for a request, median of n = {len(valid)} trials)"
        )
        yield {"what": NEEDED, "words": words}
    if cpus := run.record.parameters.get("server_cpus"):
        words = f"the server could use {cpus:g} CPUs, so this is not the throughput of a whole core"
        yield {"what": LIMITED, "words": words}


def _throughput_words(table: pd.DataFrame, _: Page) -> str:
    sentences = table.loc[table["what"].isin([NEEDED, LIMITED]), "words"].astype(str)
    text = "".join(f" {sentence[:1].upper()}{sentence[1:]}." for sentence in sentences)
    return (
        "Every point is a trial (hollow: refused; where the client was the limit, it is not the"
        f" server's throughput).{text}"
    )


THROUGHPUT_CHART = Planes(
    THROUGHPUT_TITLE,
    _throughput_words,
    layers=(Points(styles=STYLES, how={"s": 22}),),
    planes=Plane(
        Axis("users of the closed loop, no think time (log)", log=True),
        Axis("throughput, successful responses per second", below=0.0),
    ),
    x="users",
)


THROUGHPUT_OVER_CLIENTS = View(
    "throughput_over_clients", THROUGHPUT_TITLE, clients_table, THROUGHPUT_CHART.draw,
    suits=lambda run: any(name.startswith(PREFIX) for name in run.record.factors.get("rung", ())),
)  # fmt: skip

VIEWS = (
    EFFECT,
    SUCCESS_BY_PHASE,
    LIFE_CYCLE_PARTS,
    THROUGHPUT_OVER_CLIENTS,
    CLIENT_OR_SERVER,
    TIME_BREAKDOWN,
    LATENCY_CPU,
    THROUGHPUT,
    IN_FLIGHT,
)
