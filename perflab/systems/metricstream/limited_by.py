"""Whether the load generator or the server was the limit, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

import pandas as pd

from perflab.figures.charts import Axis, Points, RowChart, Rules
from perflab.figures.origin import Page, trials_shown
from perflab.figures.theme import PALETTE, Style
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.metricstream.rules import (
    CLAIM,
    MAIN,
    REACHED,
    SERVER_CPU,
    blocks_of,
    effect_in,
    finding_of,
    has_pairs,
    in_words,
    pairs_of,
)
from perflab.systems.metricstream.rungs import LOAD_TESTS, OF_THE_LAB

TITLE = "client-limited or server-limited"
RATE, SUCCESS, CORES = "rate", "success", "cores"
NAIVE, OWN, MARK, SAID = "as told by the naive client", "the lab's client", "mark", "said"
STYLES = {
    NAIVE: Style(PALETTE[1], "s", "naive client, as it counts itself"),
    OWN: Style(PALETTE[0], "o", "the lab's client"),
}
# Panel: its words, the columns of the naive client's and the lab's trials, the factor of its unit.
PANELS: Mapping[str, tuple[str, str, str, float]] = {
    RATE: ("answers per second", "told_achieved_rps", "throughput_rps", 1.0),
    SUCCESS: ("success, %", "told_success_rate", "success_share", 100.0),
    CORES: ("the server's CPU, cores", SERVER_CPU, SERVER_CPU, 1.0),
}
LIMIT_COLUMNS = ["panel", "what", "treatment", "state", "value", "words"]


def limits_table(run: Run) -> pd.DataFrame:
    """Return a row per panel and trial of each pair, with marks and a sentence on each pair.

    ``mark`` is the target rate, 100% and one core; ``said`` has a pair's word, the ratio of its
    rates with its 95% interval, and the verdict on claim 4.
    """
    trials = trials_shown(run)
    pairs = pairs_of(run)
    if trials.empty or not pairs:
        return pd.DataFrame(columns=LIMIT_COLUMNS)
    points = [
        _points(run, trials, rung, client, panel)
        for pair in pairs
        for rung, client in ((pair, NAIVE), (OF_THE_LAB[pair], OWN))
        for panel in PANELS
    ]
    if not any(len(part) for part in points):
        return pd.DataFrame(columns=LIMIT_COLUMNS)
    target = float(run.record.parameters["target_rate"])
    marks = [
        {"panel": panel, "what": MARK, "value": value}
        for panel, value in ((RATE, target), (SUCCESS, 100.0), (CORES, 1.0))
    ]
    sentences = [{"what": SAID, "words": _pair_sentence(run, pair)} for pair in pairs]
    parts = [*(part for part in points if len(part)), pd.DataFrame([*marks, *sentences])]
    return pd.concat(parts, ignore_index=True).reindex(columns=LIMIT_COLUMNS)


def _points(run: Run, trials: pd.DataFrame, rung: str, client: str, panel: str) -> pd.DataFrame:
    _, naive_column, lab_column, factor = PANELS[panel]
    rows = trials[trials["treatment"].isin(run.record.selected({"rung": rung}))]
    column = naive_column if client == NAIVE else lab_column
    values = rows.get(column, pd.Series(math.nan, index=rows.index)).astype(float)
    return rows[["treatment", "state"]].assign(panel=panel, what=client, value=factor * values)


def _pair_sentence(run: Run, pair: str) -> str:
    blocks = blocks_of(run, pair)
    sentence = f"{LOAD_TESTS[pair]}: {in_words(blocks)}"
    if effect := effect_in(run, blocks):
        has_interval = math.isfinite(effect.low)
        interval = f" [{effect.low:.2f}, {effect.high:.2f}]" if has_interval else ""
        sentence += f", naive over lab's rate {effect.estimate:.2f}{interval}, n = {effect.n_text}"
    return f"{sentence}; {CLAIM}: {finding_of(run).verdict}" if pair == MAIN else sentence


def _labels(table: pd.DataFrame, page: Page) -> dict[Hashable, str]:
    """Return the treatments of the pairs, those of a pair side by side."""
    shown = table.loc[table["what"].isin(STYLES), "treatment"].unique()
    return {name: page.styles[name].label for name in shown if name in page.styles}


def _words(table: pd.DataFrame, _: Page) -> str:
    sentences = table.loc[table["what"] == SAID, "words"].astype(str)
    text = ". ".join(f"{sentence[:1].upper()}{sentence[1:]}" for sentence in sentences)
    return (
        "Points: trials (hollow: refused). Dashed: the target rate, all of it, one core. A"
        f" generator that misses {REACHED:.0%} of its target on a server that has room, where the"
        " lab's client reaches it in the same block, is itself the limit. Success: of what was"
        f" planned; as told, achieved over target rate. {text}."
    )


CHART = RowChart(
    TITLE,
    _words,
    layers=(Rules((MARK,)), Points((*STYLES,), styles=STYLES, how={"s": 20})),
    panels={panel: Axis(words, below=0.0) for panel, (words, *_) in PANELS.items()},
    labels=_labels,
    row_in=0.4,
)
CLIENT_OR_SERVER = View(
    "client_or_server", TITLE, limits_table, CHART.draw, 
    suits=has_pairs,
)  # fmt: skip
