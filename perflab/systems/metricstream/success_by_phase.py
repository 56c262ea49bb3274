"""Success by phase, beside what was published."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from perflab.figures.charts import Axis, Marks, Points, RowChart, Typical
from perflab.figures.origin import in_words, trials_shown, typical_rows
from perflab.figures.theme import PALETTE, PUBLISHED_COLOR, Style
from perflab.figures.view import View
from perflab.recordings import Run, published
from perflab.systems.metricstream.rungs import LADDER, PHASES_TABLE, STUDY

SUCCESS_TITLE = "success by phase, beside what was published"
RESPONSE = "success_share"
TRIAL, TYPICAL, BEFORE, AFTER = "trial", "typical", "published before", "published after"
MEASURES = {"success_before": BEFORE, "success_after": AFTER, "success": AFTER}
SUCCESS_COLUMNS = ["what", "treatment", "state", "value", "low", "high", "n"]
STYLES = {TRIAL: Style(PALETTE[0], "o", "trial")}
MARKS = {BEFORE: ("<", "published before the phase"), AFTER: ("D", "published after it")}


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
