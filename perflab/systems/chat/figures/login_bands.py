"""CPU against users and message volume: the band of logins above the band without."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from perflab.figures.canvas import canvas_of, finish, only_grid
from perflab.figures.looks import PALETTE
from perflab.figures.nothing import empty_figure
from perflab.figures.theme import styled
from perflab.recordings import Run
from perflab.systems.chat.analysis.windows import Bands, bands
from perflab.systems.chat.figures import phases

TITLE = "two bands: CPU with logins under way, and without"
COLUMNS = ["treatment", "trial_id", "t_s", "joining", "users", "messages_per_s", "cpu"]
PANELS = {"users": "connected users", "messages_per_s": "messages delivered per second"}
LOOKS = {
    (True, 0): ("joining, costly logins", PALETTE[1], "^"),
    (False, 0): ("all joined, costly logins", PALETTE[4], "v"),
    (True, 1): ("joining, free logins", PALETTE[0], "o"),
    (False, 1): ("all joined, free logins", PALETTE[5], "s"),
}


def table(run: Run) -> pd.DataFrame:
    """Return the windows with a CPU share; at most 400 rows, evenly thinned."""
    return phases.thinned(_windows(run))


def _windows(run: Run) -> pd.DataFrame:
    return phases.windows(run)[COLUMNS].dropna()


@styled
def login_bands(run: Run) -> Figure | None:
    """Draw both bands for a run of two treatments, costly logins and free ones; None for others."""
    names = [item.name for item in run.record.treatments]
    if [item.levels.get("rung") for item in run.record.treatments] != LEVELS:
        return None
    found = _windows(run)
    if found.empty:
        return empty_figure(run, TITLE)
    difference = bands(phases.windows(run), names[0], names[1])
    figure = canvas_of(
        run,
        TITLE,
        plot_height_in=3.5,
        subtitle=_subtitle(difference),
        key=[
            Line2D([], [], ls="", marker=marker, ms=4.5, color=color, label=text)
            for text, color, marker in LOOKS.values()
        ],
    )
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (column, words) in zip(panels, PANELS.items(), strict=True):
        _draw(axes, found, column, names)
        axes.set_xlabel(words)
    panels[0].set_ylabel(f"CPU use of {phases.SERVICE}, % of a core")
    return finish(figure)


LEVELS = ["costly_logins", "free_logins"]


def _subtitle(difference: Bands) -> str:
    return (
        "Every point is a second of a valid trial. At the same number of users, costly logins"
        f" take {difference.text()}; published: about 70 points."
    )


def _draw(axes: Axes, found: pd.DataFrame, column: str, names: list[str]) -> None:
    for (joining, number), (_, color, marker) in LOOKS.items():
        own = found[(found["joining"] == joining) & (found["treatment"] == names[number])]
        axes.plot(
            own[column],
            100 * own["cpu"],
            ls="",
            marker=marker,
            ms=3.2,
            mfc=color,
            mec="white",
            mew=0.3,
            alpha=0.7,
        )
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    only_grid(axes, "y")
