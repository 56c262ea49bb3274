"""Success of every phase: measured, and what was published of it before and after."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from perflab.figures.charts import Axis, Marks, Points, RowChart, Typical
from perflab.figures.evidence import in_words, trials_shown, typical_rows
from perflab.figures.looks import PALETTE, Look
from perflab.figures.view import View
from perflab.recordings import Run, published
from perflab.systems.metricstream.preset import PHASES_TABLE, STUDY
from perflab.systems.metricstream.rungs import PHASES

TITLE = "success by phase, beside what was published"
RESPONSE = "success_share"
TRIAL, TYPICAL, BEFORE, AFTER = "trial", "typical", "published before", "published after"
MEASURES = {"success_before": BEFORE, "success_after": AFTER, "success": AFTER}
COLUMNS = ["what", "treatment", "state", "value", "low", "high", "n"]
LOOKS = {TRIAL: Look(PALETTE[0], "o", "trial")}
MARKS = {BEFORE: ("<", "published before the phase"), AFTER: ("D", "published after it")}


def success_table(run: Run) -> pd.DataFrame:
    """Return the success of every trial in %, the typical value, and what was published.

    ``typical`` has its 95% interval over the valid trials, ``low`` to ``high``, and their number.
    """
    trials = trials_shown(run)
    if trials.empty or RESPONSE not in trials:
        return pd.DataFrame(columns=COLUMNS)
    points = trials[["treatment", "state"]].assign(what=TRIAL, value=100 * trials[RESPONSE])
    typical = typical_rows(run, RESPONSE).assign(what=TYPICAL)
    typical[["value", "low", "high"]] = 100 * typical[["value", "low", "high"]].astype(float)
    have = {item.levels["rung"]: item.name for item in run.record.treatments}
    shown = [each for each in (points, typical, pd.DataFrame(_published(have))) if len(each)]
    return pd.concat(shown, ignore_index=True).reindex(columns=COLUMNS)


def _published(have: dict[str, str]) -> list[dict[str, Any]]:
    table = published(STUDY)
    own = table[(table["place"] == PHASES_TABLE) & table["measure"].isin(MEASURES)]
    return [
        {"what": MEASURES[row["measure"]], "treatment": have[rung], "value": row["value"]}
        for row in own.to_dict("records")
        if (rung := row["scenario"].partition(":")[0].replace(" ", "_")) in have
    ]


def _said(table: pd.DataFrame) -> dict[Hashable, str]:
    typical = table[table["what"] == TYPICAL].to_dict("records")
    return {str(row["treatment"]): _words(row) for row in typical}


def _words(row: Mapping[Hashable, Any]) -> str:
    return in_words(row, "{:.4g}").replace("\n", " ", 1).replace(" ", "% ", 1)


def has_phases(run: Run) -> bool:
    """Return whether a run has the published phases."""
    rungs = {item.levels.get("rung") for item in run.record.treatments}
    return "connection" in run.record.factors and bool(rungs & set(PHASES))


CHART = RowChart(
    TITLE,
    "Success here: an answer of 202 within the time-out, of all requests planned. The study does"
    " not define its own, and its phases do not chain: its numbers lie beside these, and are"
    " compared with nothing. In numbers: typical value of the valid trials with its 95% interval"
    " (hollow points: refused trials).",
    layers=(
        Points(looks=LOOKS, at=-0.12, how={"s": 18}),
        Typical(of=(TYPICAL,), within=(0.0, 100.0), at=0.12),
        *(
            Marks((what,), shape, label, color=PALETTE[1], hollow=True, size=5.5, at=0.12)
            for what, (shape, label) in MARKS.items()
        ),
    ),
    panels={"": Axis("success, % of the requests that were planned", ends=(-2, 104))},
    row_in=0.46,
    said=_said,
)
SUCCESS_BY_PHASE = View("success_by_phase", TITLE, success_table, CHART.draw, suits=has_phases)
