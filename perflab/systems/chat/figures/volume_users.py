"""Message volume against the number of users, with the fitted power law and the published one."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.curves.power_laws import PowerLaw
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
from perflab.figures.plots.milliseconds import log_axis
from perflab.figures.points import draw_points
from perflab.figures.theme import MUTED
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.analysis.volume import (
    JOINING,
    PLATEAU,
    crowds,
    growing_treatments,
    plateaus,
    published_factor,
    volume_laws,
)
from perflab.systems.chat.figures import phases
from perflab.systems.chat.published_load import published_exponent

TITLE = "message volume against users"
SUPERSCRIPTS = str.maketrans(
    "0123456789", "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)
MEASURED, FITTED, PUBLISHED, SAID = "measured", "fitted", "published", "said"
COLUMNS = ["what", "from", "users", "messages_per_s", "words"]
LOOKS = {JOINING: Look(PALETTE[0], "o", JOINING), PLATEAU: Look(PALETTE[1], "s", PLATEAU)}
WORDS = {
    JOINING: " Circles: means over a trial's seconds with about as many users, the geometric mean"
    " of those who act and those who are connected.",
    PLATEAU: " Squares: whole trials, while all users act.",
}


def volume_users_table(run: Run) -> pd.DataFrame:
    """Return volume by users, by where the points come from (``analysis.volume``).

    ``what`` is a measured point, an end of a fitted law or of the published one (straight lines on
    logarithmic axes), or what is ``said`` of a law in ``words``.
    """
    laws, factor = volume_laws(run, phases.windows(run)), published_factor(run)
    points = [_points(run, where) for where in laws]
    if not points or not sum(map(len, points)):
        return pd.DataFrame(columns=COLUMNS)
    seen = pd.concat(points)["users"].agg(["min", "max"])
    drawn = [*points, *(_law(where, law, own) for (where, law), own in zip(
        laws.items(), points, strict=True))]  # fmt: skip
    if factor is not None:
        exponent = published_exponent()
        words = f"{factor:g} n{f'{exponent:g}'.translate(SUPERSCRIPTS)}"
        said = {"what": PUBLISHED, "from": "", "words": words}
        drawn.append(_line(seen, factor, exponent).assign(**said))
    return pd.concat(drawn, ignore_index=True).reindex(columns=COLUMNS)


def _points(run: Run, where: str) -> pd.DataFrame:
    found = plateaus(run)
    if where == JOINING:
        found = crowds(run, phases.windows(run)).rename(columns={"crowd": "users"})
    found = found[found["messages_per_s"] > 0][["users", "messages_per_s"]]
    return found.astype(float).assign(**{"what": MEASURED, "from": where})


def _law(where: str, law: PowerLaw, own: pd.DataFrame) -> pd.DataFrame:
    words = f"Volume {where}{'' if law.supported else ':'} {law.text()}"
    said = pd.DataFrame([{"what": SAID, "from": where, "words": words}])
    if not law.supported:
        return said
    line = _line(own["users"].agg(["min", "max"]), law.factor.value, law.exponent.value)
    return pd.concat([said, line.assign(**{"what": FITTED, "from": where})])


def _line(users: pd.Series[float], factor: float, power: float) -> pd.DataFrame:
    return pd.DataFrame({"users": users, "messages_per_s": factor * users**power})


def tells_volume(run: Run) -> bool:
    """Return whether a run has several numbers of users, within its trials or between them."""
    return len(run.record.factors.get("users", [])) > 1 or bool(growing_treatments(run))


def draw_volume_users(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw volume against users on logarithmic axes."""
    said = table[table["what"] == SAID]
    lines = zip(said["words"], said["from"], strict=True)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=page.sheet.height_in(3.3),
        subtitle=" ".join(f"{words}.{WORDS[where]}" for words, where in lines),
        key=_key(table),
    )
    axes = figure.subplots()
    points = table[table["what"] == MEASURED]
    draw_points(axes, points, "users", "messages_per_s", "from", LOOKS, s=13, alpha=0.75)
    _draw_laws(axes, table)
    log_axis(axes, "x")
    log_axis(axes, "y")
    axes.set_xlabel("users (log)")
    axes.set_ylabel("messages delivered per second (log)")
    only_grid(axes, "y")
    return finish(figure)


def _draw_laws(axes: Axes, table: pd.DataFrame) -> None:
    for where, own in table[table["what"] == FITTED].groupby("from", sort=False):
        axes.plot(own["users"], own["messages_per_s"], color=LOOKS[str(where)].color, lw=1.4)
    own = table[table["what"] == PUBLISHED]
    axes.plot(own["users"], own["messages_per_s"], color=MUTED, lw=1.1, ls=":")


def _key(table: pd.DataFrame) -> list[Line2D]:
    handles = []
    fitted = set(table.loc[table["what"] == FITTED, "from"])
    for where in table.loc[table["what"] == SAID, "from"]:
        look = LOOKS[where]
        handles.append(Line2D([], [], ls="", marker=look.marker, ms=4.5, color=look.color,
                              label=f"measured {where}"))  # fmt: skip
        if where in fitted:
            handles.append(Line2D([], [], color=look.color, lw=1.4, label=f"fitted {where}"))
    for words in dict.fromkeys(table.loc[table["what"] == PUBLISHED, "words"]):
        label = f"published: {words}"
        handles.append(Line2D([], [], color=MUTED, lw=1.1, ls=":", label=label))
    return handles


VOLUME_USERS = View(
    "volume_users", TITLE, volume_users_table, draw_volume_users, suits=tells_volume
)
