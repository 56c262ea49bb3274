"""All downloads of a trial per rung, one line each; batches show as steps."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from perflab.figures.canvas import room_in
from perflab.figures.charts import Axis, Plane, Planes
from perflab.figures.origin import Page
from perflab.figures.theme import PALETTE, tick_label
from perflab.figures.view import View, varies
from perflab.instruments.other_load import TABLE as OTHER_LOAD
from perflab.recordings import Run
from perflab.systems.registry.rungs import RUNGS

TITLE = "all downloads of a trial, one line each"
WAITS, WORKED_ON, COMES = "waits", "the service reads it", "the body comes"
GIVEN_UP, FAILS = "waits, and times out", "waits, and fails otherwise"
COLORS = {
    WAITS: "#CBD3D9", WORKED_ON: PALETTE[6], COMES: PALETTE[0], GIVEN_UP: "#E9A887",
    FAILS: PALETTE[3],
}  # fmt: skip
# The service's own phases of its work on a download.
WORK = ("phase_metadata_ms", "phase_first_byte_ms", "phase_get_ms")
KEY = ["worker", "user", "planned_ns"]
WATERFALL_COLUMNS = ["treatment", "place", "begin_s", "work_s", "first_s", "end_s", "outcome"]
PER_ROW = 3
LEAST_PLACES = 10
CAME_WHOLE, TIMED_OUT = "whole", "timeout"
WAIT_OF = {CAME_WHOLE: WAITS, TIMED_OUT: GIVEN_UP}
has_downloads = varies("handler")


def waterfall_table(run: Run) -> pd.DataFrame:
    """Return the downloads of each treatment's first valid trial, in the order in which they end.

    Seconds count from the planned common start. ``first_s`` is when the first bytes of the body
    were read (NaN: none were), ``work_s`` how long the service worked on the download before that,
    by its own account (metadata and store; NaN: no account), ``outcome`` is ``whole`` or the error.
    With the load from inside the service's own generator gives all of these.
    """
    firsts = first_trials(run)
    from_inside = is_inside(firsts)
    outside, within = [*firsts["trial_id"][~from_inside]], [*firsts["trial_id"][from_inside]]
    order = [*outside, *within]
    if not order:
        return pd.DataFrame(columns=WATERFALL_COLUMNS)
    parts = [_of_clients(run, outside)] if outside else []
    parts += [_of_own_generator(run, within)] if within else []
    downloads = pd.concat(parts).merge(firsts[["trial_id", "treatment"]], on="trial_id")
    downloads["order"] = downloads["trial_id"].map(order.index)
    downloads = downloads.sort_values(["order", "end_s", "first_s"], ignore_index=True)
    downloads["place"] = downloads.groupby("order").cumcount()
    return downloads[WATERFALL_COLUMNS]


def first_trials(run: Run) -> pd.DataFrame:
    """Return the row of each treatment's first valid trial."""
    return run.valid_trials().sort_values("block").drop_duplicates("treatment")


def is_inside(trials: pd.DataFrame) -> pd.Series[bool]:
    """Return which trials have their load from inside; older recordings have none."""
    outside = pd.Series("outside", index=trials.index)
    return trials.get("factor_load_from", outside) == "inside"


def _of_own_generator(run: Run, trials: list[str]) -> pd.DataFrame:
    """Return the downloads that the service's own generator recorded."""
    table = run.table(OTHER_LOAD, trials)
    return pd.DataFrame(
        {
            "trial_id": table["trial_id"],
            "begin_s": table["start_ms"] / 1e3,
            "work_s": math.nan,
            "first_s": table["first_byte_ms"] / 1e3,
            "end_s": table["end_ms"] / 1e3,
            "outcome": table["outcome"].replace({"done": CAME_WHOLE, "timed_out": TIMED_OUT}),
        }
    )


def _of_clients(run: Run, trials: list[str]) -> pd.DataFrame:
    """Return the downloads of the lab's own clients."""
    progress = run.table("progress", trials)
    bodies_ns = progress.groupby(["trial_id", *KEY])["at_ns"].min().rename("body_ns")
    requests = run.requests(trial_ids=trials)
    requests = requests.merge(bodies_ns.reset_index(), how="left", on=["trial_id", *KEY])
    begin_ns = requests.groupby("trial_id")["planned_ns"].transform("min")
    work_ms = requests.reindex(columns=[*WORK]).astype(float).sum(axis=1, min_count=1)
    return pd.DataFrame(
        {
            "trial_id": requests["trial_id"],
            "begin_s": (requests["planned_ns"] - begin_ns) / 1e9,
            "work_s": work_ms / 1e3,
            "first_s": (requests["body_ns"] - begin_ns) / 1e9,
            "end_s": (requests["done_ns"] - begin_ns) / 1e9,
            "outcome": requests["error"].where(requests["error"] != "", CAME_WHOLE),
        }
    )


class Spans:
    """A layer that draws each download as a bar for each part of its time."""

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:  # noqa: ARG002
        """Draw the downloads of one panel."""
        first_s = rows["first_s"].fillna(rows["end_s"])
        begun_s = np.maximum(rows["begin_s"], first_s - rows["work_s"].astype(float).fillna(0.0))
        waited = rows["outcome"].map(WAIT_OF).fillna(FAILS)
        bars: dict[str, list[list[tuple[float, float]]]] = {words: [] for words in COLORS}
        columns = (rows["place"], rows["begin_s"], begun_s, first_s, rows["end_s"], waited)
        for place, begin, begun, first, end, wait in zip(*columns, strict=True):
            bars[wait].append(_corners(place, begin, begun))
            bars[WORKED_ON].append(_corners(place, begun, first))
            bars[COMES].append(_corners(place, first, end))
        for words, parts in bars.items():
            # Antialiased edges would show as lines between bars that touch.
            axes.add_collection(
                PolyCollection(parts, facecolors=COLORS[words], lw=0, antialiased=False, gid=words)
            )

    def key(self, table: pd.DataFrame, page: Page) -> list[Line2D]:  # noqa: ARG002
        """Return a line for each part; most runs have no other failures."""
        has_failures = not table["outcome"].isin(WAIT_OF).all()
        return [
            Line2D([], [], color=color, lw=3, label=words)
            for words, color in COLORS.items()
            if words != FAILS or has_failures
        ]


def _corners(y: float, begin: float, end: float) -> list[tuple[float, float]]:
    """Return the corners of a bar of height 1 around ``y``."""
    return [(begin, y - 0.5), (end, y - 0.5), (end, y + 0.5), (begin, y + 0.5)]


def _words(table: pd.DataFrame, _: Page) -> str:
    inside_rungs = {f"rung={name}" for name, rung in RUNGS.items() if rung.load_from == "inside"}
    vouching = " With the load from inside: as the service's own generator tells, unvouched for."
    return (
        "Each treatment's first valid trial; all downloads start at 0, and stand in the order in"
        " which they end. How long the service read one is what it says itself; a buffered answer"
        f" begins when all of it is read.{vouching * bool(inside_rungs & set(table['treatment']))}"
    )


def _planes(table: pd.DataFrame, page: Page) -> Mapping[str, Plane]:
    x = Axis("seconds since the start", ends=(0, 1.03 * float(table["end_s"].max())), few=4)
    places = table.groupby("treatment").size().clip(lower=LEAST_PLACES)
    shown = [name for name in page.styles if name in places]
    width_in = room_in(1.7, min(PER_ROW, len(shown)))
    planes = {}
    for name in shown:
        y = Axis("downloads", ends=(places[name] - 0.2, -0.8), whole=True, few=4)
        planes[name] = Plane(x, y, tick_label(page.styles[name].label, width_in, 8, 3))
    return planes


CHART = Planes(
    TITLE, _words, (Spans(),), _planes, x="end_s", y="place", across=PER_ROW, height_in=2.7,
    further_in=2.3, share_x=True, grid="x",
)  # fmt: skip
WATERFALL = View("waterfall", TITLE, waterfall_table, CHART.draw, suits=has_downloads)
