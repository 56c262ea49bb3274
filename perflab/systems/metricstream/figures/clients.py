"""The naive client beside the lab's, and throughput over the users of a closed loop."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from perflab.analysis.evaluation import Finding
from perflab.figures.charts import Axis, Plane, Planes, Points, RowChart, Rules
from perflab.figures.evidence import trials_shown
from perflab.figures.origin import Page
from perflab.figures.theme import PALETTE, Look
from perflab.figures.view import Judging, View
from perflab.recordings import Run, published_value
from perflab.systems.metricstream.limited_by import (
    CLAIMS,
    REACHED,
    blocks_of,
    finding_of,
    has_pairs,
    in_words,
    judged_claims,
    pairs_of,
)
from perflab.systems.metricstream.rungs import LOAD_TESTS, OF_THE_LAB, OTHERS, STUDY

LIMITER_TITLE = "client-limited or server-limited"
RATE, SUCCESS, CORES = "rate", "success", "cores"
NAIVE, OWN, MARK, SAID = "as told by the naive client", "the lab's client", "mark", "said"
LIMITER_LOOKS = {
    NAIVE: Look(PALETTE[1], "s", "naive client, as it counts itself"),
    OWN: Look(PALETTE[0], "o", "the lab's client"),
}
# Panel: its words, the columns of the naive client's and the lab's trials, the factor of its unit.
PANELS: Mapping[str, tuple[str, str, str, float]] = {
    RATE: ("answers per second", "told_achieved_rps", "throughput_rps", 1.0),
    SUCCESS: ("success, %", "told_success_rate", "success_share", 100.0),
    CORES: ("the server's CPU, cores", "cpu_share_metricstream", "cpu_share_metricstream", 1.0),
}
LIMITER_COLUMNS = ["panel", "what", "treatment", "state", "value", "words"]


def limits_table(run: Run) -> pd.DataFrame:
    """Return a row per panel and trial of each pair, with marks and a sentence on each pair.

    ``mark`` is the target rate, 100% and one core; ``said`` has a pair's word, the ratio of its
    rates with its 95% interval, and the verdict on claim 4.
    """
    trials = trials_shown(run)
    pairs = pairs_of(run)
    if trials.empty or not pairs:
        return pd.DataFrame(columns=LIMITER_COLUMNS)
    points = [
        _points(run, trials, rung, client, panel)
        for pair in pairs
        for rung, client in ((pair, NAIVE), (OF_THE_LAB[pair], OWN))
        for panel in PANELS
    ]
    if not any(len(part) for part in points):
        return pd.DataFrame(columns=LIMITER_COLUMNS)
    target = float(run.record.parameters["target_rate"])
    marks = [
        {"panel": panel, "what": MARK, "value": value}
        for panel, value in ((RATE, target), (SUCCESS, 100.0), (CORES, 1.0))
    ]
    sentences = [{"what": SAID, "words": _pair_sentence(run, pair)} for pair in pairs]
    parts = [*(part for part in points if len(part)), pd.DataFrame([*marks, *sentences])]
    return pd.concat(parts, ignore_index=True).reindex(columns=LIMITER_COLUMNS)


def _points(run: Run, trials: pd.DataFrame, rung: str, client: str, panel: str) -> pd.DataFrame:
    _, naive_column, lab_column, factor = PANELS[panel]
    rows = trials[trials["treatment"].isin(run.record.selected({"rung": rung}))]
    column = naive_column if client == NAIVE else lab_column
    values = rows.get(column, pd.Series(math.nan, index=rows.index)).astype(float)
    return rows[["treatment", "state"]].assign(panel=panel, what=client, value=factor * values)


def _pair_sentence(run: Run, pair: str) -> str:
    finding = finding_of(run, pair)
    ratio = _ratio(finding)
    verdict = f"; {CLAIMS[pair]}: {finding.verdict}" if pair in CLAIMS else ""
    return f"{LOAD_TESTS[pair]}: {in_words(blocks_of(run, pair))}{ratio}{verdict}"


def _ratio(finding: Finding) -> str:
    effect = finding.effect
    if effect is None:
        return ""
    interval = f" [{effect.low:.2f}, {effect.high:.2f}]" if math.isfinite(effect.low) else ""
    return f", naive over lab's rate {effect.estimate:.2f}{interval}, n = {effect.n}"


def _labels(table: pd.DataFrame, page: Page) -> dict[Hashable, str]:
    """Return the treatments of the pairs, those of a pair side by side."""
    shown = table.loc[table["what"].isin(LIMITER_LOOKS), "treatment"].unique()
    return {name: page.looks[name].label for name in shown if name in page.looks}


def _limiter_words(table: pd.DataFrame, _: Page) -> str:
    sentences = table.loc[table["what"] == SAID, "words"].astype(str)
    text = ". ".join(f"{sentence[:1].upper()}{sentence[1:]}" for sentence in sentences)
    return (
        "Points: trials (hollow: refused). Dashed: the target rate, all of it, one core. A"
        f" generator that misses {REACHED:.0%} of its target on a server that has room, where the"
        " lab's client reaches it in the same block, is itself the limit. Success: of what was"
        f" planned; as told, achieved over target rate. {text}."
    )


LIMITER_CHART = RowChart(
    LIMITER_TITLE,
    _limiter_words,
    layers=(Rules((MARK,)), Points((*LIMITER_LOOKS,), looks=LIMITER_LOOKS, how={"s": 20})),
    panels={panel: Axis(words, below=0.0) for panel, (words, *_) in PANELS.items()},
    labels=_labels,
    row_in=0.4,
)
CLIENT_OR_SERVER = View(
    "client_or_server", LIMITER_TITLE, limits_table, LIMITER_CHART.draw, suits=has_pairs,
    judging=Judging(tuple(CLAIMS.values()), judged_claims),
)  # fmt: skip


THROUGHPUT_TITLE = "throughput over users, and what the published limit would need"
TRIAL, NEEDED, LIMITED = "trial", "needed", "limited"
THROUGHPUT_LOOKS = {TRIAL: Look(PALETTE[0], "o", "trial")}
PREFIX = "users_"
THROUGHPUT_COLUMNS = ["what", "users", "state", "value", "words"]


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
    parts = [points, pd.DataFrame([*_needed(valid), *_limited(run)])]
    return pd.concat([part for part in parts if len(part)], ignore_index=True).reindex(
        columns=THROUGHPUT_COLUMNS
    )


def _needed(valid: pd.DataFrame) -> list[dict[str, Any]]:
    request_us = float(valid["server_cpu_us_per_request"].median()) if len(valid) else math.nan
    limit_rps = published_value(STUDY, OTHERS, "theoretical limit", "throughput")
    if not math.isfinite(request_us):
        return []
    words = (
        f"the published limit of {limit_rps:,.0f}/s would take"
        f" {limit_rps * request_us / 1e6:,.3g} cores of this server alone ({request_us:.3g} us of"
        f" CPU for a request, median of n = {len(valid)} trials)"
    )
    return [{"what": NEEDED, "words": words}]


def _limited(run: Run) -> list[dict[str, Any]]:
    cpus = run.record.parameters.get("server_cpus")
    if cpus is None:
        return []
    words = f"the server could use {cpus:g} CPUs, so this is not the throughput of a whole core"
    return [{"what": LIMITED, "words": words}]


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
    layers=(Points(looks=THROUGHPUT_LOOKS, how={"s": 22}),),
    planes=Plane(
        Axis("users of the closed loop, no think time (log)", log=True),
        Axis("throughput, successful responses per second", below=0.0),
    ),
    x="users",
)


def has_users(run: Run) -> bool:
    """Return whether a run varies the users of a closed loop."""
    rungs = [treatment.levels.get("rung", "") for treatment in run.record.treatments]
    return any(name.startswith(PREFIX) for name in rungs)


THROUGHPUT_OVER_CLIENTS = View(
    "throughput_over_clients",
    THROUGHPUT_TITLE,
    clients_table,
    THROUGHPUT_CHART.draw,
    suits=has_users,
)
