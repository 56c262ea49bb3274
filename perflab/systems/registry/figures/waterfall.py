"""All downloads of a trial per rung, one line each: batches are steps that anyone can see."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.looks import PALETTE
from perflab.figures.page import Page
from perflab.figures.sheets import grid_of
from perflab.figures.theme import FAINT
from perflab.figures.view import View
from perflab.figures.words import tick_label
from perflab.instruments.other_load import TABLE as OTHER_LOAD
from perflab.recordings import Run
from perflab.systems.registry.rungs import INSIDE, inside

TITLE = "all downloads of a trial, one line each"
WAITS, WORKED_ON, COMES = "waits", "the service reads it", "the body comes"
GIVEN_UP = "waits, and times out"
COLORS = {WAITS: "#CBD3D9", WORKED_ON: PALETTE[6], COMES: PALETTE[0], GIVEN_UP: "#E9A887"}
# What the service says of the time in which it worked on a download.
WORK = ("phase_metadata_ms", "phase_first_byte_ms", "phase_get_ms")
KEY = ["worker", "user", "planned_ns"]
COLUMNS = ["treatment", "place", "begin_s", "work_s", "first_s", "end_s", "outcome"]
PER_ROW = 3
LEAST_PLACES = 10
WHOLE = "whole"


def waterfall_table(run: Run) -> pd.DataFrame:
    """Return the downloads of each treatment's first valid trial, in the order in which they end.

    Seconds are from the instant at which all were to start. ``first_s`` is when the first bytes of
    the body were read (NaN: none were), ``work_s`` how long the service says that it worked on it
    before (metadata and store; NaN: it said nothing), ``outcome`` is ``whole`` or the error. Where
    the load came from inside, all of that is as the service's own generator tells.
    """
    valid = run.valid_trials()
    if valid.empty:
        return pd.DataFrame(columns=COLUMNS)
    from_inside = is_inside(valid)
    parts = [_from_outside(run, valid[~from_inside]), _from_inside(run, valid[from_inside])]
    found = [each for each in parts if len(each)]
    return pd.concat(found, ignore_index=True)[COLUMNS] if found else pd.DataFrame(columns=COLUMNS)


def is_inside(trials: pd.DataFrame) -> pd.Series[bool]:
    """Return of which trials the load came from inside the service; once it never did."""
    outside = pd.Series("outside", index=trials.index)
    return trials.get("factor_load_from", outside) == "inside"


def _from_inside(run: Run, valid: pd.DataFrame) -> pd.DataFrame:
    """Return the downloads that the service's own generator tells of."""
    if valid.empty:
        return pd.DataFrame(columns=COLUMNS)
    firsts = _firsts(valid)
    told = run.table(OTHER_LOAD, list(firsts))
    parts = [_as_told(name, told[told["trial_id"] == trial]) for name, trial in firsts.items()]
    return pd.concat(parts, ignore_index=True)


def _as_told(name: object, own: pd.DataFrame) -> pd.DataFrame:
    found = pd.DataFrame(
        {
            "treatment": str(name),
            "begin_s": own["start_ms"] / 1e3,
            "work_s": math.nan,
            "first_s": own["first_byte_ms"] / 1e3,
            "end_s": own["end_ms"] / 1e3,
            "outcome": own["outcome"].replace({"done": WHOLE, "timed_out": "timeout"}),
        }
    ).sort_values(["end_s", "first_s"])
    return found.assign(place=range(len(found)))


def _from_outside(run: Run, valid: pd.DataFrame) -> pd.DataFrame:
    if valid.empty:
        return pd.DataFrame(columns=COLUMNS)
    firsts = _firsts(valid)
    ids = list(firsts)
    requests = run.requests(trial_ids=ids)
    points = run.progress(ids)
    firsts_ns = points.groupby(["trial_id", *KEY])["at_ns"].min().rename("body_ns").reset_index()
    table = requests.merge(firsts_ns, how="left", on=["trial_id", *KEY])
    return pd.concat(
        [_of_trial(name, table[table["trial_id"] == trial]) for name, trial in firsts.items()],
        ignore_index=True,
    )[COLUMNS]


def _firsts(valid: pd.DataFrame) -> pd.Series[str]:
    """Return each treatment's first valid trial."""
    return valid.sort_values("block").groupby("treatment", sort=False)["trial_id"].first()


def _of_trial(name: object, own: pd.DataFrame) -> pd.DataFrame:
    begin_ns = int(own["planned_ns"].min())
    found = pd.DataFrame(
        {
            "treatment": str(name),
            "begin_s": (own["planned_ns"] - begin_ns) / 1e9,
            "work_s": own.reindex(columns=[*WORK]).astype(float).sum(axis=1, min_count=1) / 1e3,
            "first_s": (own["body_ns"] - begin_ns) / 1e9,
            "end_s": (own["done_ns"] - begin_ns) / 1e9,
            "outcome": own["error"].where(own["error"] != "", WHOLE),
        }
    ).sort_values(["end_s", "first_s"])
    return found.assign(place=range(len(found)))


def draw_waterfall(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a panel per treatment, all with one axis of time."""
    shown = [name for name in page.looks if name in set(table["treatment"])]
    grid = grid_of(len(shown), across=PER_ROW)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.4 + 2.3 * grid.down,
        subtitle="Each treatment's first valid trial; all downloads start at 0, and stand in the"
        " order in which they end. How long the service read one is what it says itself; a buffered"
        f" answer begins when all of it is read.{_whose(shown)}",
        key=[Line2D([], [], color=color, lw=3, label=words) for words, color in COLORS.items()],
    )
    panels = figure.subplots(grid.down, grid.across, sharex=True, squeeze=False).flatten()
    for axes, name in zip(panels, shown, strict=False):
        axes.set_title(tick_label(page.looks[name].label, grid.room_in(2.1), 8, 2), fontsize=8)
        _draw(axes, table[table["treatment"] == name])
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    panels[0].set_xlim(0, 1.03 * float(table["end_s"].max()))
    for number, axes in enumerate(panels[: len(shown)]):
        if number + grid.across >= len(shown):
            axes.set_xlabel("seconds since the start")
            axes.tick_params(axis="x", labelbottom=True)
        if number % grid.across == 0:
            axes.set_ylabel("downloads")
    return finish(figure)


def _whose(shown: Sequence[str]) -> str:
    """Say who tells of the downloads where their load came from inside."""
    told = [name for name in shown if name.removeprefix("rung=") in map(inside, INSIDE)]
    if not told:
        return ""
    return " With the load from inside: as the service's own generator tells, unvouched for."


def _draw(axes: Axes, own: pd.DataFrame) -> None:
    bars: dict[str, list[list[tuple[float, float]]]] = {words: [] for words in COLORS}
    for each in own.to_dict("records"):
        y, begin, end = (float(each[name]) for name in ("place", "begin_s", "end_s"))
        first = end if math.isnan(each["first_s"]) else float(each["first_s"])
        work = 0.0 if math.isnan(each["work_s"]) else float(each["work_s"])
        begun = max(begin, first - work)
        bars[WAITS if each["outcome"] == WHOLE else GIVEN_UP].append(_bar(y, begin, begun))
        bars[WORKED_ON].append(_bar(y, begun, first))
        bars[COMES].append(_bar(y, first, end))
    places = max(LEAST_PLACES, len(own))
    for words, parts in bars.items():
        # Smoothed edges would show as lines between bars that touch.
        axes.add_collection(
            PolyCollection(parts, facecolors=COLORS[words], lw=0, antialiased=False, gid=words)
        )
    axes.set_ylim(places - 0.2, -0.8)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    only_grid(axes, "x")
    axes.grid(True, axis="x", color=FAINT)


def _bar(y: float, begin: float, end: float) -> list[tuple[float, float]]:
    """Return the corners of a bar that is as high as a place."""
    return [(begin, y - 0.5), (end, y - 0.5), (end, y + 0.5), (begin, y + 0.5)]


def has_downloads(run: Run) -> bool:
    """Return whether a run is of downloads."""
    return "handler" in run.record.factors


WATERFALL = View("waterfall", TITLE, waterfall_table, draw_waterfall, suits=has_downloads)
