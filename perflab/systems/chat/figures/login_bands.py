"""CPU against users and message volume: the band of logins above the band without."""

from __future__ import annotations

import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas, panels
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.points import draw_points
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.systems.chat.analysis.windows import bands
from perflab.systems.chat.figures import phases
from perflab.systems.chat.rungs import COSTLY, FREE

TITLE = "two bands: CPU with logins under way, and without"
RUNGS = [COSTLY, FREE]
PANELS = {"users": "connected users", "messages_per_s": "messages delivered per second"}
COLUMNS = ["band", *PANELS, "cpu_percent", "words"]
LOGINS = ("costly logins", "free logins")
LOOKS = {
    look.label: look
    for look in (
        Look(PALETTE[1], "^", f"joining, {LOGINS[0]}"),
        Look(PALETTE[4], "v", f"all joined, {LOGINS[0]}"),
        Look(PALETTE[0], "o", f"joining, {LOGINS[1]}"),
        Look(PALETTE[6], "s", f"all joined, {LOGINS[1]}"),
    )
}


def login_bands_table(run: Run) -> pd.DataFrame:
    """Return the windows with a CPU share by band; first a row that says how far apart they are."""
    every = phases.windows(run)
    shown = every[["treatment", "joining", *PANELS, "cpu"]].dropna()
    if shown.empty:
        return pd.DataFrame(columns=COLUMNS)
    names = [item.name for item in run.record.treatments][: len(RUNGS)]
    shown = shown[shown["treatment"].isin(names)]
    logins = shown["treatment"].map(dict(zip(names, LOGINS, strict=True)))
    joining = shown["joining"].map({True: "joining, ", False: "all joined, "})
    points = shown.assign(band=joining + logins, cpu_percent=100 * shown["cpu"])
    said = pd.DataFrame([{"words": bands(every, names[0], names[1]).text()}])
    return pd.concat([said, points], ignore_index=True)[COLUMNS]


def _published() -> float:
    return published_value("chat", "figure 3", "login band above the other", "cpu_difference")


def compares_logins(run: Run) -> bool:
    """Return whether a run begins with two treatments, costly logins and free ones."""
    return [item.levels.get("rung") for item in run.record.treatments][: len(RUNGS)] == RUNGS


def draw_login_bands(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw both bands against users and against volume."""
    grid = page.sheet.grid(len(PANELS), across=2, least_in=2.0)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=page.sheet.height_in(3.5) * grid.down,
        subtitle="Every point is a second of a valid trial. At the same number of users, costly"
        f" logins take {''.join(table['words'])}; published: about {_published():g} points.",
        key=[
            Line2D([], [], ls="", marker=look.marker, ms=4.5, color=look.color, label=name)
            for name, look in LOOKS.items()
        ],
    )
    points = table[table["band"] != ""]
    drawn = panels(figure, grid, sharey=True)
    for axes, (column, words) in zip(drawn, PANELS.items(), strict=True):
        draw_points(axes, points, column, "cpu_percent", "band", LOOKS, s=10, alpha=0.7)
        axes.set_xlabel(words)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        only_grid(axes, "y")
    for axes in drawn[:: grid.across]:
        axes.set_ylabel(f"CPU use of {phases.SERVICE}, % of a core")
    return finish(figure)


LOGIN_BANDS = View("login_bands", TITLE, login_bands_table, draw_login_bands, suits=compares_logins)
