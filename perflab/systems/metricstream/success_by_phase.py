"""Success by phase, beside what was published."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from perflab.figures.charts import TRIAL, Axis, Marks, Points, RowChart, Typical
from perflab.figures.origin import TYPICAL, in_words, trials_and_typical
from perflab.figures.theme import PALETTE, PUBLISHED_COLOR, Style
from perflab.figures.view import View
from perflab.recordings import Run, published
from perflab.systems.metricstream.rungs import LADDER, PHASES_TABLE, STUDY

SUCCESS_TITLE = "success by phase, beside what was published"
RESPONSE = "success_share"
BEFORE, AFTER = "published before", "published after"
MEASURES = {"success_before": BEFORE, "success_after": AFTER, "success": AFTER}
SUCCESS_COLUMNS = ["what", "treatment", "state", "value", "low", "high", "n"]
STYLES = {TRIAL: Style(PALETTE[0], "o", "trial")}
MARKS = {BEFORE: ("<", "published before the phase"), AFTER: ("D", "published after it")}


def success_table(run: Run) -> pd.DataFrame:
    """Return the success of every trial in %, the typical values, and the published ones.

    A typical value has its 95% interval over the valid trials, ``low`` to ``high``, and their
    number.
    """
    measured = trials_and_typical(run, {RESPONSE: ("", 0.01)})
    if measured.empty:
        return pd.DataFrame(columns=SUCCESS_COLUMNS)
    treatment_of = {treatment.levels["rung"]: treatment.name for treatment in run.record.treatments}
    beside = pd.DataFrame(_success_published(treatment_of))
    parts = [part for part in (measured, beside) if len(part)]
    return pd.concat(parts, ignore_index=True).reindex(columns=SUCCESS_COLUMNS)


def _success_published(treatment_of: dict[str, str]) -> list[dict[str, Any]]:
    table = published(STUDY)
    rows = table[(table["place"] == PHASES_TABLE) & table["measure"].isin(MEASURES)]
    return [
        {"what": MEASURES[row["measure"]], "treatment": treatment_of[rung], "value": row["value"]}
        for row in rows.to_dict("records")
        if (rung := row["scenario"].partition(":")[0].replace(" ", "_")) in treatment_of
    ]


def _success_said(table: pd.DataFrame) -> dict[Hashable, str]:
    typical = table[table["what"].isin(TYPICAL)].to_dict("records")
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
        Typical(within=(0.0, 100.0), at=0.12),
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
