"""CPU, message volume, latency and users over a trial, phase by phase."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Lines, Plane, Planes
from perflab.figures.origin import Page
from perflab.figures.theme import looks_of
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.figures import ladder

TITLE = "a trial over time"
PANELS = {
    "cpu_percent": Axis("CPU,\n% of a core", ends=(0, None), whole=True, few=4),
    "messages_per_s": Axis("messages\nper second", ends=(0, None), whole=True, few=4),
    "p90_ms": Axis("p90,\nms (log)", log=True),
    "users": Axis("connected\nusers", ends=(0, None), whole=True, few=4),
}
SECONDS = Axis("seconds since the first connection")
MOST_COLUMNS = 2


def stream_timeline_table(run: Run) -> pd.DataFrame:
    """Return the windows of the first valid trial of each shown treatment."""
    windows = ladder.windows(run)
    windows = windows[windows["treatment"].isin([*looks_of(run.record)][:MOST_COLUMNS])]
    firsts = windows.groupby("treatment", sort=False)["trial_id"].first()
    shown = windows[windows["trial_id"].isin(set(firsts))]
    shown = shown.assign(cpu_percent=100 * shown["cpu"].astype(float))
    return shown[["treatment", "t_s", "phase", *PANELS]]


@dataclass(frozen=True)
class Shades:
    """A layer that shades the seconds of each phase."""

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:  # noqa: ARG002
        """Shade the phases of one panel."""
        for phase, seconds in rows.groupby("phase", sort=False)["t_s"]:
            color, alpha = ladder.PHASE_LOOKS[str(phase)].color, ladder.SHADES[str(phase)]
            axes.axvspan(seconds.min(), seconds.max() + 1, color=color, alpha=alpha, lw=0, zorder=0)

    def key(self, table: pd.DataFrame, page: Page) -> list[Patch]:  # noqa: ARG002
        """Return a patch for each phase that occurs."""
        return [
            Patch(fc=look.color, alpha=ladder.SHADES[name], label=look.label)
            for name, look in ladder.PHASE_LOOKS.items()
            if name in set(table["phase"])
        ]


def draw_stream_timeline(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw each treatment's first valid trial over time, one column per treatment."""
    shown = dict([*page.looks.items()][:MOST_COLUMNS])
    planes = {
        f"{what} {name}": Plane(SECONDS, axis, look.label if what == "cpu_percent" else "")
        for what, axis in PANELS.items()
        for name, look in shown.items()
    }
    chart = Planes(
        TITLE,
        "Seconds of each treatment's first valid trial; shaded by phase. CPU is that of"
        f" {ladder.SERVICE}; latency is that of deliveries, from the planned instant of sending."
        f"{ladder.left_out(page, MOST_COLUMNS)}",
        layers=(Shades(), Lines(by="treatment", how={"lw": 1.1}, keyed=False)),
        planes=lambda _, __: planes,
        panel="panel",
        x="middle_s",
        across=len(shown),
        height_in=1.7,
        further_in=1.3,
        share_x="col",
        share_y="row",
        empty=ladder.EMPTY,
    )
    by_panel = table.melt(["treatment", "t_s", "phase"], [*PANELS])
    panel = by_panel["variable"] + " " + by_panel["treatment"]
    return chart.draw(by_panel.assign(panel=panel, middle_s=by_panel["t_s"] + 0.5), page)


STREAM_TIMELINE = View(
    "stream_timeline", TITLE, stream_timeline_table, draw_stream_timeline, ladder.of_crowds
)
