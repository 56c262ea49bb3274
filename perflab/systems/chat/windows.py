"""Seconds of a trial: what users, messages, latency and CPU were in each, and their figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Lines, Plane, Planes
from perflab.figures.origin import Page
from perflab.figures.theme import Style, styles_of
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.statistics.correlation import cpu_shares
from perflab.systems.chat.codec_costs import is_of_codecs
from perflab.systems.chat.streams import ACTIONS

SERVICE = "chat"
SECOND_NS = 1_000_000_000
PHASES = ("ramp", "plateau", "tail")
WINDOW_COLUMNS = [
    "trial_id", "treatment", "block", "t_s", "phase", "joining", "users", "messages_per_s",
    "p90_ms", "cpu",
]  # fmt: skip
# A p90 of fewer deliveries says little.
FEWEST = 36
# Phases differ in opacity, too: colours this light look alike in greyscale.
SHADES = {"ramp": 0.22, "plateau": 0.05, "tail": 0.14}
PHASE_STYLES = {
    "ramp": Style("#D55E00", "^", "ramp: users join and begin"),
    "plateau": Style("#0072B2", "o", "plateau: all users act"),
    "tail": Style("#00805D", "s", "tail: users leave"),
}
MOST_PANELS = 4
WINDOW = "window"
# The text in the panel of a treatment without a window.
EMPTY = "no window of a valid trial"
TITLE = "a trial over time"
PANELS = {
    "cpu_percent": Axis("CPU,\n% of a core", ends=(0, None), whole=True, few=4),
    "messages_per_s": Axis("messages\nper second", ends=(0, None), whole=True, few=4),
    "p90_ms": Axis("p90,\nms (log)", log=True),
    "users": Axis("connected\nusers", ends=(0, None), whole=True, few=4),
}
SECONDS = Axis("seconds since the first connection")
MOST_COLUMNS = 2


def of_crowds(run: Run) -> bool:
    """Return whether a run has crowds of users; only the codec microbenchmark has none."""
    return not is_of_codecs(run)


@lru_cache(maxsize=2)
def windows(run: Run) -> pd.DataFrame:
    """Cut the valid trials into windows of a second; several figures share one computation.

    Returns
    -------
    DataFrame
        One row per whole window: trial_id, treatment, block; t_s (since the trial's first
        connection); at the window's middle phase (``ramp`` until all users act, ``plateau`` until
        the first user has ended, ``tail``), joining (users are still logging in) and users
        (connected); messages_per_s delivered; p90_ms of their latency, NaN where the window holds
        too few; cpu of the service (1.0 = one core).
    """
    parts = [
        _windows_of_trial(run, row)
        for row in run.valid_trials().to_dict("records")
        if not math.isnan(float(row.get("messages_delivered") or math.nan))
    ]
    parts = [part for part in parts if len(part)] or [pd.DataFrame(columns=WINDOW_COLUMNS)]
    return pd.concat(parts, ignore_index=True)[WINDOW_COLUMNS]


def _windows_of_trial(run: Run, row: Mapping[Any, Any]) -> pd.DataFrame:
    """Return one row per whole second of a trial; the last, partial second is left out."""
    trial = str(row["trial_id"])
    table, samples = run.table("messages", [trial]), run.table("samples", [trial])
    begin_ns, end_ns = int(table["at_ns"].min()), int(table["at_ns"].max())
    edges = begin_ns + SECOND_NS * np.arange((end_ns - begin_ns) // SECOND_NS + 1)
    middles = (edges[:-1] + edges[1:]) // 2
    index = pd.RangeIndex(len(middles))
    # Without a plateau all of a trial is the ramp.
    plateau_ns = [int(row[f"plateau_{end}_ns"]) or end_ns for end in ("begin", "end")]
    acted = table.loc[table["kind"].isin(ACTIONS), "user"].unique()
    delivered = table[table["kind"] == "delivery"]
    window = ((delivered["at_ns"] - begin_ns) // SECOND_NS).rename("window")
    latency = ((delivered["at_ns"] - delivered["planned_ns"]) / 1e6).groupby(window)
    deliveries = latency.size().reindex(index, fill_value=0)
    return pd.DataFrame(
        {
            "trial_id": trial,
            "treatment": row["treatment"],
            "block": row["block"],
            "t_s": (edges[:-1] - begin_ns) / 1e9,
            "phase": np.select(
                [middles < plateau_ns[0], middles <= plateau_ns[1]], PHASES[:2], PHASES[2]
            ),
            "joining": middles < int(row["joined_ns"]),
            "users": _present(table[table["user"].isin(acted)], middles),
            "messages_per_s": deliveries.astype(float),
            "p90_ms": latency.quantile(0.9).reindex(index).where(deliveries >= FEWEST),
            "cpu": cpu_shares(samples[samples["service"] == SERVICE], edges),
        },
        index=index,
    )


def _present(messages: pd.DataFrame, middles: np.ndarray) -> np.ndarray:
    came = messages.loc[messages["kind"] == "connected", "at_ns"].sort_values()
    left = messages.loc[messages["kind"].isin(("left", "cut")), "at_ns"].sort_values()
    return came.searchsorted(middles, "right") - left.searchsorted(middles, "right")


def shown_windows(run: Run, columns: list[str]) -> pd.DataFrame:
    """Return treatment, phase and ``columns`` of the windows whose treatment has a panel."""
    whole_windows = windows(run)[["treatment", "phase", *columns]].dropna()
    return whole_windows[whole_windows["treatment"].isin([*styles_of(run.record)][:MOST_PANELS])]


def left_out(page: Page, most: int = MOST_PANELS) -> str:
    """Say how many treatments are not shown; empty where all are."""
    count = len(page.styles)
    return f" Shown: the first {most} of {count} treatments." if most < count else ""


def stream_timeline_table(run: Run) -> pd.DataFrame:
    """Return the windows of the first valid trial of each shown treatment."""
    shown = windows(run)
    shown = shown[shown["treatment"].isin([*styles_of(run.record)][:MOST_COLUMNS])]
    firsts = shown.groupby("treatment", sort=False)["trial_id"].first()
    shown = shown[shown["trial_id"].isin(set(firsts))]
    shown = shown.assign(cpu_percent=100 * shown["cpu"].astype(float))
    return shown[["treatment", "t_s", "phase", *PANELS]]


class Shades:
    """A layer that shades the seconds of each phase."""

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:  # noqa: ARG002
        """Shade the phases of one panel."""
        for phase, seconds in rows.groupby("phase", sort=False)["t_s"]:
            color, alpha = PHASE_STYLES[str(phase)].color, SHADES[str(phase)]
            axes.axvspan(seconds.min(), seconds.max() + 1, color=color, alpha=alpha, lw=0, zorder=0)

    def key(self, table: pd.DataFrame, page: Page) -> list[Patch]:  # noqa: ARG002
        """Return a patch for each phase that occurs."""
        return [
            Patch(fc=style.color, alpha=SHADES[name], label=style.label)
            for name, style in PHASE_STYLES.items()
            if name in set(table["phase"])
        ]


def draw_stream_timeline(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw each treatment's first valid trial over time, one column per treatment."""
    shown = dict([*page.styles.items()][:MOST_COLUMNS])
    planes = {
        f"{what} {name}": Plane(SECONDS, axis, style.label if what == "cpu_percent" else "")
        for what, axis in PANELS.items()
        for name, style in shown.items()
    }
    chart = Planes(
        TITLE,
        "Seconds of each treatment's first valid trial; shaded by phase. CPU is that of"
        f" {SERVICE}; latency is that of deliveries, from the planned instant of sending."
        f"{left_out(page, MOST_COLUMNS)}",
        layers=(Shades(), Lines(by="treatment", how={"lw": 1.1}, keyed=False)),
        planes=planes,
        panel="panel",
        x="middle_s",
        across=len(shown),
        height_in=1.7,
        further_in=1.3,
        share_x="col",
        share_y="row",
        empty=EMPTY,
    )
    by_panel = table.melt(["treatment", "t_s", "phase"], [*PANELS])
    panel = by_panel["variable"] + " " + by_panel["treatment"]
    return chart.draw(by_panel.assign(panel=panel, middle_s=by_panel["t_s"] + 0.5), page)


STREAM_TIMELINE = View(
    "stream_timeline", TITLE, stream_timeline_table, draw_stream_timeline, of_crowds
)
