"""Client-limited or server-limited: the naive client and the lab's own on one server."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

import pandas as pd

from perflab.analysis.treatments.evaluation import Finding
from perflab.figures.charts import Axis, Points, RowChart, Rules
from perflab.figures.evidence import trials_shown
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.view import Judging, View
from perflab.recordings import Run
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
from perflab.systems.metricstream.rungs import LOAD_TESTS, OF_THE_LAB

TITLE = "client-limited or server-limited"
RATE, SUCCESS, CORES = "rate", "success", "cores"
NAIVE, OWN, MARK, SAID = "as told by the naive client", "the lab's client", "mark", "said"
LOOKS = {
    NAIVE: Look(PALETTE[1], "s", "naive client, as it counts itself"),
    OWN: Look(PALETTE[0], "o", "the lab's client"),
}
# Panel: its words, and the columns of the naive client's trials and of the lab's, in which unit.
PANELS: Mapping[str, tuple[str, str, str, float]] = {
    RATE: ("answers per second", "told_achieved_rps", "throughput_rps", 1.0),
    SUCCESS: ("success, %", "told_success_rate", "success_share", 100.0),
    CORES: ("the server's CPU, cores", "cpu_share_metricstream", "cpu_share_metricstream", 1.0),
}
COLUMNS = ["panel", "what", "treatment", "state", "value", "words"]


def limits_table(run: Run) -> pd.DataFrame:
    """Return a row per panel and trial of each pair, marks, and what is said of each pair.

    ``mark`` is the target rate, 100% and one core; ``said`` has a pair's word, the ratio of its
    rates with its 95% interval, and what that says of claim 4.
    """
    trials = trials_shown(run)
    pairs = pairs_of(run)
    if trials.empty or not pairs:
        return pd.DataFrame(columns=COLUMNS)
    points = [
        _points(run, trials, rung, who, panel)
        for pair in pairs
        for rung, who in ((pair, NAIVE), (OF_THE_LAB[pair], OWN))
        for panel in PANELS
    ]
    if not any(len(each) for each in points):
        return pd.DataFrame(columns=COLUMNS)
    target = float(run.record.parameters["target_rate"])
    marks = [
        {"panel": panel, "what": MARK, "value": value}
        for panel, value in ((RATE, target), (SUCCESS, 100.0), (CORES, 1.0))
    ]
    said = [{"what": SAID, "words": _said(run, pair)} for pair in pairs]
    parts = [*(each for each in points if len(each)), pd.DataFrame([*marks, *said])]
    return pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)


def _points(run: Run, trials: pd.DataFrame, rung: str, who: str, panel: str) -> pd.DataFrame:
    _, told, counted, factor = PANELS[panel]
    own = trials[trials["treatment"].isin(run.record.selected({"rung": rung}))]
    column = told if who == NAIVE else counted
    values = own.get(column, pd.Series(math.nan, index=own.index)).astype(float)
    return own[["treatment", "state"]].assign(panel=panel, what=who, value=factor * values)


def _said(run: Run, pair: str) -> str:
    found = finding_of(run, pair)
    ratio = _ratio(found)
    judged = f"; {CLAIMS[pair]}: {found.verdict}" if pair in CLAIMS else ""
    return f"{LOAD_TESTS[pair]}: {in_words(blocks_of(run, pair))}{ratio}{judged}"


def _ratio(found: Finding) -> str:
    effect = found.effect
    if effect is None:
        return ""
    interval = f" [{effect.low:.2f}, {effect.high:.2f}]" if math.isfinite(effect.low) else ""
    return f", naive over lab's rate {effect.estimate:.2f}{interval}, n = {effect.n}"


def _labels(table: pd.DataFrame, page: Page) -> dict[Hashable, str]:
    """Return the treatments of the pairs, what is one pair side by side."""
    shown = table.loc[table["what"].isin(LOOKS), "treatment"].unique()
    return {name: page.looks[name].label for name in shown if name in page.looks}


def _words(table: pd.DataFrame, _: Page) -> str:
    told = table.loc[table["what"] == SAID, "words"].astype(str)
    said = ". ".join(f"{each[:1].upper()}{each[1:]}" for each in told)
    return (
        "Points: trials (hollow: refused). Dashed: the target rate, all of it, one core. A"
        f" generator that misses {REACHED:.0%} of its target on a server that has room, where the"
        " lab's client reaches it in the same block, is itself the limit. Success: of what was"
        f" planned; as told, achieved over target rate. {said}."
    )


CHART = RowChart(
    TITLE,
    _words,
    layers=(Rules((MARK,)), Points((*LOOKS,), looks=LOOKS, how={"s": 20})),
    panels={panel: Axis(words, below=0.0) for panel, (words, *_) in PANELS.items()},
    labels=_labels,
    row_in=0.4,
)
CLIENT_OR_SERVER = View(
    "client_or_server", TITLE, limits_table, CHART.draw, suits=has_pairs,
    judging=Judging(tuple(CLAIMS.values()), judged_claims),
)  # fmt: skip
