"""The ladder beside the published table: successes and times of each rung."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from perflab.figures.charts import Axis, Points, Published, RowChart
from perflab.figures.evidence import trials_shown
from perflab.figures.origin import Page
from perflab.figures.points import OTHER_LOAD, PUBLISHED, SAME_LOAD
from perflab.figures.theme import PALETTE, Look
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.recordings.responses import at_least_column
from perflab.systems.registry.figures.waterfall import has_downloads, is_inside
from perflab.systems.registry.rungs import RUNGS, STUDY, inside, published_settings

TITLE = "the ladder beside the published table"
TRIAL, AT_LEAST = "trial", "at least"
TOLD, TOLD_AT_LEAST = "as told", "as told, at least"
# Response: its panel, words, measure in the results table, and the factor to the panel's unit.
PANELS: Mapping[str, tuple[str, str, str, float]] = {
    "succeeded": ("succeeded", "succeeded", "successful", 1.0),
    "mean_ms": ("mean_s", "mean, s (log)", "mean_latency", 1e-3),
    "total_duration_s": ("total_duration_s", "total duration, s (log)", "total_duration", 1.0),
}
SCENARIOS = {"step_0": "baseline", "step_3": "optimised"}
# The study does not say where its load came from, so its numbers stand beside both.
SCENARIOS |= {inside(rung): scenario for rung, scenario in SCENARIOS.items()}
LOOKS = {
    TRIAL: Look(PALETTE[0], "o", "trial"),
    AT_LEAST: Look(PALETTE[0], ">", "trial: at least that"),
    TOLD: Look(PALETTE[1], "s", "load from inside, as the service's own generator counts"),
    TOLD_AT_LEAST: Look(PALETTE[1], ">", "the same: at least that"),
}
COLUMNS = ["panel", "what", "treatment", "state", "value"]


def ladder_table(run: Run) -> pd.DataFrame:
    """Return three responses of every trial by rung, and the published ones.

    ``what`` is ``trial``, ``at least`` (downloads timed out) or ``published``; with the load from
    inside ``as told`` and ``as told, at least``, as only the service's own generator counted.
    ``state`` is the trial's, or whether the run has the published load. Times are in seconds.
    """
    trials = trials_shown(run)
    if trials.empty or not {"succeeded", "told_succeeded"} & set(trials):
        return pd.DataFrame(columns=COLUMNS)
    parts = [_of_response(run, trials, response) for response in PANELS]
    return pd.concat(parts, ignore_index=True)[COLUMNS]


def _of_response(run: Run, trials: pd.DataFrame, response: str) -> pd.DataFrame:
    from_inside = is_inside(trials)
    parts = [
        _counted(trials[~from_inside], response, response, (TRIAL, AT_LEAST)),
        _counted(trials[from_inside], response, f"told_{response}", (TOLD, TOLD_AT_LEAST)),
        pd.DataFrame(_published(run, response)),
    ]
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _counted(
    trials: pd.DataFrame, response: str, column: str, whats: tuple[str, str]
) -> pd.DataFrame:
    """Return the rows of a panel from a column of trials, or from its lower bound."""
    panel, _, _, factor = PANELS[response]
    missing = pd.Series(np.nan, index=trials.index)
    values = trials.get(column, missing).astype(float)
    at_least = trials.get(at_least_column(column), missing).astype(float)
    return pd.DataFrame(
        {
            "panel": panel,
            "what": np.where(values.isna() & at_least.notna(), whats[1], whats[0]),
            "treatment": trials["treatment"],
            "state": trials["state"],
            "value": values.fillna(at_least) * factor,
        }
    )


def _published(run: Run, response: str) -> list[dict[str, Any]]:
    panel, _, measure, factor = PANELS[response]
    stated = published_settings()
    has_published_load = all(
        run.record.parameters.get(name) == value for name, value in stated.items()
    )
    return [
        {
            "panel": panel,
            "what": PUBLISHED,
            "treatment": treatment.name,
            "state": SAME_LOAD if has_published_load else OTHER_LOAD,
            "value": factor * published_value(STUDY, "results table", scenario, measure),
        }
        for treatment in run.record.treatments
        if (scenario := SCENARIOS.get(treatment.levels.get("rung", ""))) is not None
    ]


def _labels(_: pd.DataFrame, page: Page) -> dict[Hashable, str]:
    """Return the treatments in the order of the ladder."""
    places = {f"rung={name}": place for place, name in enumerate(RUNGS)}
    ordered = sorted(page.looks, key=lambda name: places.get(name, len(places)))
    return {name: page.looks[name].label for name in ordered}


def _words(table: pd.DataFrame, _: Page) -> str:
    has_told = bool({TOLD, TOLD_AT_LEAST} & set(table["what"]))
    vouching = " Load from inside: as the service's own generator counts, for which nobody vouches."
    return (
        "Points: trials (hollow: refused). An arrowhead is a trial in which downloads timed out:"
        " its time is at least that. Published: one run of each, of another machine; that of step 0"
        f" is such a bound, too.{vouching * has_told}"
    )


CHART = RowChart(
    TITLE,
    _words,
    layers=(Points((*LOOKS,), looks=LOOKS, at=0.12, how={"s": 18}), Published(at=-0.17)),
    panels={
        panel: Axis(words, log="log" in words, below=None if "log" in words else 0.06, sparse=True)
        for panel, words, *_ in PANELS.values()
    },
    labels=_labels,
)
DOWNLOAD_LADDER = View("download_ladder", TITLE, ladder_table, CHART.draw, suits=has_downloads)
