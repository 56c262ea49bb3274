"""The ladder of steps beside the published table."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd
from pydantic import ValidationError

from perflab.figures.charts import Axis, Points, Published, RowChart
from perflab.figures.origin import TRIAL, Page, bounded, trials_shown
from perflab.figures.theme import PALETTE, Style
from perflab.figures.view import OTHER_LOAD, PUBLISHED, SAME_LOAD, View
from perflab.recordings import Run, published_value
from perflab.systems.registry.experiments.registry_downloads import DownloadParameters
from perflab.systems.registry.rungs import RUNGS, STUDY, inside
from perflab.systems.registry.waterfall import has_downloads, is_inside

LADDER_TITLE = "the ladder beside the published table"
AT_LEAST = "at least"
TOLD, TOLD_AT_LEAST = "as told", "as told, at least"
# Response: its panel, words, measure in the results table, and the factor to the panel's unit.
LADDER_PANELS: Mapping[str, tuple[str, str, str, float]] = {
    "succeeded": ("succeeded", "succeeded", "successful", 1.0),
    "mean_ms": ("mean_s", "mean, s (log)", "mean_latency", 1e-3),
    "total_duration_s": ("total_duration_s", "total duration, s (log)", "total_duration", 1.0),
}
SCENARIOS = {"step_0": "baseline", "step_3": "optimised"}
# The study does not say where its load came from, so its numbers stand beside both.
SCENARIOS |= {inside(rung): scenario for rung, scenario in SCENARIOS.items()}
LADDER_STYLES = {
    TRIAL: Style(PALETTE[0], "o", "trial"),
    AT_LEAST: Style(PALETTE[0], ">", "trial: at least that"),
    TOLD: Style(PALETTE[1], "s", "load from inside, as the service's own generator counts"),
    TOLD_AT_LEAST: Style(PALETTE[1], ">", "the same: at least that"),
}
LADDER_COLUMNS = ["panel", "what", "treatment", "state", "value"]


def ladder_table(run: Run) -> pd.DataFrame:
    """Return three responses of every trial by rung, and the published ones.

    ``what`` is ``trial``, ``at least`` (downloads failed) or ``published``; with the load from
    inside ``as told`` and ``as told, at least``, as only the service's own generator counted.
    ``state`` is the trial's, or whether the run has the published load. Times are in seconds.
    """
    trials = trials_shown(run)
    if trials.empty or not {"succeeded", "told_succeeded"} & set(trials):
        return pd.DataFrame(columns=LADDER_COLUMNS)
    parts = [_of_response(run, trials, response) for response in LADDER_PANELS]
    return pd.concat(parts, ignore_index=True)[LADDER_COLUMNS]


def _of_response(run: Run, trials: pd.DataFrame, response: str) -> pd.DataFrame:
    panel, _, measure, factor = LADDER_PANELS[response]
    from_inside = is_inside(trials)
    parts = [
        bounded(trials[~from_inside], response, (TRIAL, AT_LEAST)),
        bounded(trials[from_inside], f"told_{response}", (TOLD, TOLD_AT_LEAST)),
        pd.DataFrame(_published(run, measure)),
    ]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return table.assign(panel=panel, value=factor * table["value"])


def _published(run: Run, measure: str) -> Iterator[dict[str, Any]]:
    try:
        is_same = not DownloadParameters.model_validate(run.record.parameters).differences()
    except ValidationError:
        is_same = False
    row = {"what": PUBLISHED, "state": SAME_LOAD if is_same else OTHER_LOAD}
    for treatment in run.record.treatments:
        if scenario := SCENARIOS.get(treatment.levels["rung"]):
            value = published_value(STUDY, "results table", scenario, measure)
            yield {**row, "treatment": treatment.name, "value": value}


def _labels(_: pd.DataFrame, page: Page) -> dict[Hashable, str]:
    """Return the treatments in the order of the ladder."""
    places = {f"rung={name}": place for place, name in enumerate(RUNGS)}
    ordered = sorted(page.styles, key=lambda name: places.get(name, len(places)))
    return {name: page.styles[name].label for name in ordered}


def _words(table: pd.DataFrame, _: Page) -> str:
    has_told = bool({TOLD, TOLD_AT_LEAST} & set(table["what"]))
    vouching = " Load from inside: as the service's own generator counts, for which nobody vouches."
    return (
        "Points: trials (hollow: refused). An arrowhead is a trial in which downloads timed out or"
        " failed: its time is at least that. Published: one run of each, of another machine; that"
        f" of step 0 is such a bound, too.{vouching * has_told}"
    )


LADDER_CHART = RowChart(
    LADDER_TITLE,
    _words,
    layers=(
        Points((*LADDER_STYLES,), styles=LADDER_STYLES, at=0.12, how={"s": 18}),
        Published(at=-0.17),
    ),
    panels={
        panel: Axis(words, log="log" in words, below=None if "log" in words else 0.06, sparse=True)
        for panel, words, *_ in LADDER_PANELS.values()
    },
    labels=_labels,
)
DOWNLOAD_LADDER = View(
    "download_ladder", LADDER_TITLE, ladder_table, LADDER_CHART.draw, suits=has_downloads
)
