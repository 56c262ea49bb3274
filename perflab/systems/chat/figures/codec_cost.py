"""Time and bytes per message of every codec, by operation and message."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Marks, RowChart, Stack
from perflab.figures.origin import Page
from perflab.figures.theme import PALETTE
from perflab.figures.view import View
from perflab.recordings import Run
from perflab.systems.chat.analysis.codec_costs import cost_table, is_of_codecs

STEPS = ("serialize", "deserialize")
BYTES = "bytes"
VALUES = "_values"
TITLE = "what one message costs each codec, and how long it gets"
COLUMNS = ["codec", "operation", "message", "bytes", "us", "low", "high"]
PLAIN, WITH_VALUES = "plain", "values"


def codec_cost_table(run: Run) -> pd.DataFrame:
    """Return us per operation with its interval, and bytes, per codec, operation and message."""
    return cost_table(run)[COLUMNS].dropna(subset=["us"])


def draw_codec_cost(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw each codec's time per operation and its bytes, a row per message and codec."""
    style: dict[str, Any] = {"size": 0, "lw": 2.2, "beyond": 4.0}
    rows = _as_drawn(table)
    chart = RowChart(
        TITLE,
        "Median over trials (below 6: geometric mean), each the median of its repetitions; bars are"
        " 95% intervals (an arrow: they go on). Hollow: the same work for all codecs, from and to"
        " plain values (protobuf's own deserialize leaves reading the fields for later).",
        layers=(
            Stack({BYTES: PALETTE[2]}, by="what", words="{:,.0f}".format, keyed=False),
            Intervals((PLAIN,), among=(PLAIN, WITH_VALUES), at=-0.17, **style),
            Intervals((WITH_VALUES,), among=(PLAIN, WITH_VALUES), at=0.17, **style),
            Marks((PLAIN,), "o", "the library's own step", color=PALETTE[0], at=-0.17),
            Marks((WITH_VALUES,), "o", "from or to plain values", PALETTE[0], True, at=0.17),
        ),
        panels={
            **{
                step: Axis(f"{step}, us (log)", log=True, sparse=True)
                for step in STEPS
                if step in set(rows["panel"])
            },
            BYTES: Axis("bytes", below=0.0, whole=True, few=3),
        },
        row="row",
        labels=_labels,
    )
    return chart.draw(rows, page)


def _as_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each time, and a row for the bytes of each codec and message."""
    times = table.assign(
        row=table["message"] + ": " + table["codec"],
        panel=table["operation"].str.removesuffix(VALUES),
        what=np.where(table["operation"].str.endswith(VALUES), WITH_VALUES, PLAIN),
        value=table["us"],
    )
    sizes = times.drop_duplicates("row").assign(panel=BYTES, what=BYTES, value=table["bytes"])
    return pd.concat([times, sizes], ignore_index=True)


def _labels(drawn: pd.DataFrame, _: Page) -> dict[Hashable, str]:
    """Return the rows, message by message."""
    by_message = drawn.drop_duplicates("row").groupby("message", sort=False)
    rows = pd.concat([group["row"] for _, group in by_message])
    return dict(zip(rows, rows, strict=True))


CODEC_COST = View("codec_cost", TITLE, codec_cost_table, draw_codec_cost, suits=is_of_codecs)
