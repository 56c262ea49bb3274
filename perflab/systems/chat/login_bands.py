"""CPU with logins under way, and without."""

from __future__ import annotations

import numpy as np
import pandas as pd

from perflab.analysis.effect_words import effect_text
from perflab.analysis.evaluation import evaluate
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Plane, Planes, Points
from perflab.figures.origin import Page
from perflab.figures.theme import PALETTE, Style
from perflab.figures.view import View
from perflab.recordings import Run, published_value
from perflab.statistics.in_words import capitalized, number
from perflab.systems.chat.rungs import COSTLY, FREE
from perflab.systems.chat.windows import SERVICE, windows

LOGIN_TITLE = "two bands: CPU with logins under way, and without"
AGAINST = {"users": "connected users", "messages_per_s": "messages delivered per second"}
JOIN_CPU = "join_cpu_share_"
LOGIN_COLUMNS = ["band", *AGAINST, "cpu_percent", "words"]
LOGIN_STYLES = {
    "joining, costly logins": Style(PALETTE[1], "^", "joining, costly logins"),
    "all joined, costly logins": Style(PALETTE[4], "v", "all joined, costly logins"),
    "joining, free logins": Style(PALETTE[0], "o", "joining, free logins"),
    "all joined, free logins": Style(PALETTE[6], "s", "all joined, free logins"),
}


def cost_of_logins(run: Run) -> str:
    """Say how much more CPU costly logins take while users join, by the claim about it."""
    claims = (each for each in evaluate(run) if each.contrast.response.startswith(JOIN_CPU))
    finding = next(claims, None)
    if finding is None or finding.effect is None:
        return "costly logins have nothing to compare with while users join"
    words = f"{effect_text(finding)} of CPU (n = {finding.effect.n_words})"
    return f"while users join, costly logins take {words}"


def login_bands_table(run: Run) -> pd.DataFrame:
    """Return the windows with a CPU share by band, after a row that states the cost of logins."""
    seconds = windows(run)
    shown = seconds[["treatment", "joining", *AGAINST, "cpu"]].dropna()
    if shown.empty:
        return pd.DataFrame(columns=LOGIN_COLUMNS)
    costly, free = (treatment.name for treatment in run.record.treatments[:2])
    logins = shown["treatment"].map({costly: "costly logins", free: "free logins"})
    joining = np.where(shown["joining"], "joining, ", "all joined, ")
    rows = shown.assign(band=joining + logins, cpu_percent=100 * shown["cpu"])
    sentence = pd.DataFrame([{"words": cost_of_logins(run)}])
    return pd.concat([sentence, rows], ignore_index=True)[LOGIN_COLUMNS]


def compares_logins(run: Run) -> bool:
    """Return whether the first two treatments of a run are costly and free logins."""
    return [item.levels.get("rung") for item in run.record.treatments[:2]] == [COSTLY, FREE]


def draw_login_bands(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw both bands against users and against volume."""
    published = published_value("chat", "figure 3", "login band above the other", "cpu_difference")
    cpu = Axis(f"CPU use of {SERVICE}, % of a core", ends=(0, None))
    axes = {name: Axis(words, ends=(0, None), whole=True) for name, words in AGAINST.items()}
    chart = Planes(
        LOGIN_TITLE,
        f"Every point is a second of a valid trial. {capitalized(''.join(table['words']))};"
        f" published: about {published:g} points, {number(published / 100)} cores.",
        layers=(Points((), "band", LOGIN_STYLES, how={"s": 10, "alpha": 0.7}),),
        planes={name: Plane(x, cpu) for name, x in axes.items()},
        panel="against",
        x="x",
        y="cpu_percent",
        height_in=3.5,
        share_y=True,
    )
    rows = table[table["band"] != ""].melt(["band", "cpu_percent"], [*AGAINST], "against", "x")
    return chart.draw(rows.astype({"x": float}), page)


LOGIN_BANDS = View(
    "login_bands", LOGIN_TITLE, login_bands_table, draw_login_bands, suits=compares_logins
)
