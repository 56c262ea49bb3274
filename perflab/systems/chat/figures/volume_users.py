"""Message volume against the number of users, with the fitted power law and the published one."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from perflab.analysis.curves.power_laws import PowerLaw
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Lines, Plane, Planes, Points
from perflab.figures.looks import PALETTE, Look
from perflab.figures.page import Page
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
LOOKS = {
    JOINING: Look(PALETTE[0], "o", f"measured {JOINING}"),
    PLATEAU: Look(PALETTE[1], "s", f"measured {PLATEAU}"),
}
FITTED_LOOKS = {where: replace(look, label=f"fitted {where}") for where, look in LOOKS.items()}
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
    line = _line(own["users"].agg(["min", "max"]), law.factor, law.exponent)
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
    published = "".join(dict.fromkeys(table.loc[table["what"] == PUBLISHED, "words"]))
    chart = Planes(
        TITLE,
        " ".join(f"{words}.{WORDS[where]}" for words, where in lines),
        layers=(
            Points((MEASURED,), by="from", looks=LOOKS, how={"s": 13, "alpha": 0.75}),
            Lines((FITTED,), by="from", looks=FITTED_LOOKS),
            Lines((PUBLISHED,), how={"lw": 1.1, "ls": ":"}, label=f"published: {published}"),
        ),
        planes=Plane(
            Axis("users (log)", log=True), Axis("messages delivered per second (log)", log=True)
        ),
        x="users",
        y="messages_per_s",
    )
    return chart.draw(table, page)


VOLUME_USERS = View(
    "volume_users", TITLE, volume_users_table, draw_volume_users, suits=tells_volume
)
