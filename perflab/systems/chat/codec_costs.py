"""The cost of codecs, and the number of operations that the published totals stand for."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Marks, RowChart, Stack
from perflab.figures.origin import Page
from perflab.figures.theme import PALETTE
from perflab.figures.view import View, varies
from perflab.recordings import Run, published_value
from perflab.statistics.in_words import counted
from perflab.statistics.quantiles import Estimate, across_trials
from perflab.systems.chat.experiments.serialization import (
    FACTORS,
    RESPONSE,
    SCENARIOS,
    published_total_ms,
)

COST = [*FACTORS, "bytes", "us", "low", "high", "n"]
LOOPS = ["codec", "step", "published_ms", "us", "us_low", "us_high", "loops", "low", "high", "n"]
is_of_codecs = varies(*FACTORS)
STEPS = ("serialize", "deserialize")
BYTES = "bytes"
VALUES = "_values"
TITLE = "what one message costs each codec, and how long it gets"
PLAIN, WITH_VALUES = "plain", "values"


def cost_table(run: Run) -> pd.DataFrame:
    """Return one row per treatment: codec, operation, message, bytes, us per operation.

    ``us`` is the typical value over the valid trials with its 95% interval ``low`` to ``high`` (NaN
    where n is too small).
    """
    trials = run.valid_trials()
    rows = []
    for treatment in run.record.treatments:
        levels, us = treatment.levels, across_trials(_times_us(trials, treatment.name))
        named = [levels[name] for name in FACTORS]
        rows.append([*named, int(levels["bytes"]), us.value, us.low, us.high, us.n])
    return pd.DataFrame(rows, columns=COST)


def implied_loops(run: Run) -> pd.DataFrame:
    """Return how many operations each published total stands for at the speed of this machine.

    One row per codec and step that were published and measured: published_ms; us, the time of an
    operation on this machine; and ``loops``, the typical ratio of the two over n trials. The last
    two have 95% intervals.
    """
    rows = []
    for codec, step, total_ms, trials_us in _published_and_measured(run):
        us, loops = across_trials(trials_us), across_trials(total_ms * 1e3 / trials_us)
        ends = [us.value, us.low, us.high, loops.value, loops.low, loops.high]
        rows.append([codec, step, total_ms, *ends, loops.n])
    return pd.DataFrame(rows, columns=LOOPS)


def loops_together(run: Run) -> Estimate | None:
    """Return the loop count that all published totals imply together, with its 95% interval.

    The value of a block is the geometric mean over codecs and steps; None if no block has a valid
    trial of each.
    """
    logs = [
        np.log(total_ms * 1e3 / trials_us)
        for _, _, total_ms, trials_us in _published_and_measured(run)
    ]
    by_block = pd.concat(logs, axis=1).dropna() if logs else pd.DataFrame()
    return None if by_block.empty else across_trials(np.exp(by_block.mean(axis=1)))


def loops_sentence(run: Run) -> str:
    """Return a sentence on the loop count that the published totals imply."""
    loops = loops_together(run)
    if loops is None:
        return (
            "How many operations the published totals stand for cannot be said: no block has a "
            "valid trial of every published codec and step."
        )
    stated = published_value("chat", "microbenchmark", "all", "loops")
    single_loops = implied_loops(run)["loops"]
    interval = f" [{loops.low:,.0f}, {loops.high:,.0f}]" if loops.supported else " (no interval)"
    return (
        f"At the speed of this machine the published totals stand for {loops.value:,.0f}{interval} "
        f"operations (95% interval, {counted(loops.n, 'block')}; single codecs and steps from "
        f"{single_loops.min():,.0f} to {single_loops.max():,.0f}). The study states {stated:,.0f}: "
        f"for those, its machine would have to be {stated / loops.value:.2g} times as fast as this "
        "one."
    )


def _published_and_measured(run: Run) -> list[tuple[str, str, float, pd.Series[Any]]]:
    """Return codec, step, published total in ms, and us per operation here by block."""
    trials = run.valid_trials()
    rows = []
    for treatment in run.record.treatments:
        codec, step, message = (treatment.levels[name] for name in FACTORS)
        if codec in SCENARIOS and step in STEPS and message == "published":
            times_us = _times_us(trials, treatment.name)
            if len(times_us):
                rows.append((codec, step, published_total_ms(codec, step), times_us))
    return rows


def _times_us(trials: pd.DataFrame, treatment: str) -> pd.Series[Any]:
    rows = trials[trials["treatment"] == treatment].set_index("block")
    return rows.reindex(columns=[RESPONSE])[RESPONSE].dropna().astype(float)


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
    of_messages = drawn.drop_duplicates("row").groupby("message", sort=False)["row"]
    return {row: row for _, rows in of_messages for row in rows}


CODEC_COST = View(
    "codec_cost", TITLE, lambda run: cost_table(run).drop(columns="n").dropna(subset=["us"]),
    draw_codec_cost, suits=is_of_codecs,
)  # fmt: skip
