"""Delivery latency against message volume, coloured by phase, with the study's targets."""

from __future__ import annotations

import pandas as pd

from perflab.figures.charts import Axis, Planes, Rules, treatment_panels
from perflab.figures.page import Page
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.analysis.held import targets_ms
from perflab.systems.chat.figures import phases

TITLE = "delivery latency against message volume"
TARGET = "target"
COLUMNS = ["what", "treatment", "phase", "messages_per_s", "p90_ms"]


def delivery_volume_table(run: Run) -> pd.DataFrame:
    """Return the windows that hold a p90, and the study's target for it."""
    shown = phases.shown_windows(run, ["messages_per_s", "p90_ms"]).assign(what=phases.WINDOW)
    if shown.empty:
        return pd.DataFrame(columns=COLUMNS)
    target = pd.DataFrame([{"what": TARGET, "p90_ms": targets_ms()["delivery_p90_ms"]}])
    return pd.concat([shown, target], ignore_index=True)[COLUMNS]


def _words(table: pd.DataFrame, page: Page) -> str:
    target_ms = table.loc[table["what"] == TARGET, "p90_ms"].iloc[0]
    return (
        "Every point is a second of a valid trial. Dashed: the study's target of"
        f" {target_ms:g} ms for the p90.{phases.left_out(page)}"
    )


CHART = Planes(
    TITLE,
    _words,
    layers=(
        phases.points(s=10, alpha=0.7),
        Rules((TARGET,), along="y"),
    ),
    planes=treatment_panels(
        Axis("messages delivered per second", ends=(0, None), whole=True),
        Axis("p90 per second, ms (log)", log=True),
        phases.MOST_PANELS,
    ),
    x="messages_per_s",
    y="p90_ms",
    height_in=3.4,
    share_x=True,
    share_y=True,
    empty=phases.EMPTY,
)
DELIVERY_VOLUME = View(
    "delivery_volume", TITLE, delivery_volume_table, CHART.draw, phases.of_crowds
)
