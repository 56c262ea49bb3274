"""CPU against users and message volume: the band of logins above the band without."""

from __future__ import annotations

import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Plane, Planes, Points
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
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
    said = pd.DataFrame([{"words": bands(every, names[0], names[1])}])
    return pd.concat([said, points], ignore_index=True)[COLUMNS]


def _published() -> float:
    return published_value("chat", "figure 3", "login band above the other", "cpu_difference")


def compares_logins(run: Run) -> bool:
    """Return whether a run begins with two treatments, costly logins and free ones."""
    return [item.levels.get("rung") for item in run.record.treatments][: len(RUNGS)] == RUNGS


def draw_login_bands(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw both bands against users and against volume."""
    points = table[table["band"] != ""]
    chart = Planes(
        TITLE,
        "Every point is a second of a valid trial. At the same number of users, costly logins take"
        f" {''.join(table['words'])}; published: about {_published():g} points.",
        layers=(Points((), "band", LOOKS, how={"s": 10, "alpha": 0.7}),),
        planes=_planes,
        panel="against",
        x="x",
        y="cpu_percent",
        height_in=3.5,
        share_y=True,
    )
    by_panel = [points.assign(against=name, x=points[name].astype(float)) for name in PANELS]
    return chart.draw(pd.concat(by_panel, ignore_index=True), page)


def _planes(_: pd.DataFrame, __: Page) -> dict[str, Plane]:
    cpu = Axis(f"CPU use of {phases.SERVICE}, % of a core", ends=(0, None))
    return {
        name: Plane(Axis(words, ends=(0, None), whole=True), cpu) for name, words in PANELS.items()
    }


LOGIN_BANDS = View("login_bands", TITLE, login_bands_table, draw_login_bands, suits=compares_logins)
