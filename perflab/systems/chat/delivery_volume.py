"""Delivery latency against message volume."""

from __future__ import annotations

import pandas as pd

from perflab.figures.charts import Axis, Plane, Planes, Points, Rules
from perflab.figures.origin import Page
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.ladder import targets_ms
from perflab.systems.chat.windows import (
    EMPTY,
    MOST_PANELS,
    PHASE_STYLES,
    WINDOW,
    left_out,
    of_crowds,
    shown_windows,
)

VOLUME_TITLE = "delivery latency against message volume"
TARGET = "target"
VOLUME_COLUMNS = ["what", "treatment", "phase", "messages_per_s", "p90_ms"]
VOLUME = Axis("messages delivered per second", ends=(0, None), whole=True)
LATENCY = Axis("p90 per second, ms (log)", log=True)


def delivery_volume_table(run: Run) -> pd.DataFrame:
    """Return the windows that hold a p90, and the study's target for it."""
    shown = shown_windows(run, ["messages_per_s", "p90_ms"]).assign(what=WINDOW)
    if shown.empty:
        return pd.DataFrame(columns=VOLUME_COLUMNS)
    target = pd.DataFrame([{"what": TARGET, "p90_ms": targets_ms()["delivery_p90_ms"]}])
    return pd.concat([shown, target], ignore_index=True)[VOLUME_COLUMNS]


def _words(table: pd.DataFrame, page: Page) -> str:
    target_ms = table.loc[table["what"] == TARGET, "p90_ms"].iloc[0]
    return (
        "Every point is a second of a valid trial. Dashed: the study's target of"
        f" {target_ms:g} ms for the p90.{left_out(page)}"
    )


CHART = Planes(
    VOLUME_TITLE,
    _words,
    layers=(
        Points((WINDOW,), "phase", PHASE_STYLES, how={"s": 10, "alpha": 0.7}),
        Rules((TARGET,), along="y"),
    ),
    planes=lambda _, page: {
        name: Plane(VOLUME, LATENCY, style.label)
        for name, style in [*page.styles.items()][:MOST_PANELS]
    },
    x="messages_per_s",
    y="p90_ms",
    height_in=3.4,
    share_x=True,
    share_y=True,
    empty=EMPTY,
)
DELIVERY_VOLUME = View(
    "delivery_volume", VOLUME_TITLE, delivery_volume_table, CHART.draw, of_crowds
)
