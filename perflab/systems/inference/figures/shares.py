"""Claims about shares of time: every block, the estimate, the limit of the rule, the judgement."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.treatments.evaluation import Finding
from perflab.figures.canvas import LabFigure, finish, only_grid, page_canvas
from perflab.figures.looks import PALETTE
from perflab.figures.page import Page
from perflab.figures.plots import rows
from perflab.figures.theme import INK, MUTED
from perflab.figures.view import Judging, View
from perflab.figures.words import wrap
from perflab.numerals import counted
from perflab.recordings import Run
from perflab.systems.inference.analysis.time_shares import (
    CLAIMS,
    Share,
    has_all_commits,
    judged_claims,
    judged_shares,
    shares,
)

TITLE = "claims 1, 3 and 4 as shares of time"
LEFT_IN, RIGHT_IN = 2.35, 1.75
ROW_IN = 0.9
# A line of a verdict, in rows.
LINE = 0.16
POINT, CLAIMED = PALETTE[6], PALETTE[1]
COLUMNS = [
    "name", "claim", "what", "limit", "side", "published", "share", "low", "high", "n", "left_out",
    "of_blocks", "verdict", "why",
]  # fmt: skip


def shares_table(run: Run) -> pd.DataFrame:
    """Return a row per claim: its rule, the share over blocks with its 95% interval, the verdict.

    ``side`` says on which side of the limit the claim holds; ``of_blocks`` holds every block;
    ``published`` is NaN where the load is not the published one.
    """
    found = judged_shares(run)
    return pd.DataFrame([_told(each, found[each.name]) for each in shares()], columns=COLUMNS)


def _told(share: Share, found: Finding) -> dict[str, object]:
    effect, published = found.effect, found.contrast.published_difference
    return {
        "name": share.name,
        "claim": share.claim,
        "what": share.what,
        "limit": share.limit,
        "side": "above" if share.above else "below",
        "published": math.nan if published is None else published,
        "share": effect.estimate if effect else math.nan,
        "low": effect.low if effect else math.nan,
        "high": effect.high if effect else math.nan,
        "n": effect.n if effect else 0,
        "left_out": found.left_out,
        "of_blocks": " ".join(f"{value:.6g}" for value in effect.by_block) if effect else "",
        "verdict": str(found.verdict),
        # What an interval says is seen; why a claim cannot be judged is not.
        "why": "" if found.verdict.direction else found.verdict.reason,
    }


def draw_shares(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per claim."""
    claims = {str(row["name"]): row for row in table.to_dict("records")}
    labels = {name: _asked(row) for name, row in claims.items()}
    said = {name: "\n".join([str(row["verdict"]), *_numbers(row)]) for name, row in claims.items()}
    own_rows = rows.Rows(page.sheet, labels, labels, ROW_IN, ROW_IN, said)
    figure = page_canvas(
        page,
        TITLE,
        plot_height_in=0.55 + own_rows.height_in,
        subtitle="Every point is one block: on, off and no database write are in each. Dashed: the"
        " limit of the rule, fixed before the run; the claim holds on its shaded side. Its"
        " direction is shown where the whole 95% interval lies there. An arrow ends an interval"
        f" that leaves the picture.{_reasons(table)}",
        key=_key(bool(table["published"].notna().any())),
    )
    axes = figure.subplots()
    places = own_rows.frame(axes)
    axes.tick_params(axis="y", labelsize=7.5)
    low, high = _limits(table)
    plot_in = page.sheet.width_in - LEFT_IN - RIGHT_IN - 0.3
    beyond = own_rows.either(beside=(high - low) * RIGHT_IN / plot_in, above=0.0)
    axes.set_xlim(low, high + beyond)
    for name, row in claims.items():
        _draw(axes, places[name], row, low, high)
        if beyond:
            _words(axes, places[name], row, high)
    step = 0.25 if high - low <= 1.4 else 0.5
    ticks = np.arange(math.ceil(low / step) * step, high + 1e-9, step)
    axes.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])
    axes.set_xlabel("share")
    only_grid(axes, "x")
    return finish(figure)


def _reasons(table: pd.DataFrame) -> str:
    """Say once why claims cannot be judged."""
    named: dict[str, list[str]] = {}
    for row in table[table["why"] != ""].to_dict("records"):
        named.setdefault(str(row["why"]), []).append(str(row["name"]))
    return "".join(f" {'; '.join(names)}: {why}." for why, names in named.items())


def _asked(row: Mapping[Hashable, Any]) -> str:
    lines = [f"{row['name']}:", *wrap(str(row["claim"]), 7.5, LEFT_IN - 0.1)]
    return "\n".join([*lines, *wrap(f"({row['what']})", 7.5, LEFT_IN - 0.1)])


def _limits(table: pd.DataFrame) -> tuple[float, float]:
    """Return from 0 to 1, and what blocks lie beyond; intervals may leave the picture."""
    blocks = [float(each) for row in table["of_blocks"] for each in str(row).split()]
    return max(-1.0, min([0.0, *blocks])) - 0.03, min(2.0, max([1.0, *blocks])) + 0.03


def _draw(axes: Axes, place: float, row: Mapping[Hashable, Any], low: float, high: float) -> None:
    limit = float(row["limit"])
    ends = (limit, high) if row["side"] == "above" else (low, limit)
    axes.fill_betweenx([place - 0.42, place + 0.42], *ends, color="#EEF3EE", lw=0, zorder=0)
    axes.plot([limit] * 2, [place - 0.42, place + 0.42], color=MUTED, ls="--", lw=1.0, zorder=1,
              gid="limit")  # fmt: skip
    blocks = [float(each) for each in str(row["of_blocks"]).split()]
    heights = np.linspace(-0.34, -0.02, len(blocks)) if len(blocks) > 1 else [-0.18]
    for value, height in zip(blocks, heights, strict=False):
        if low <= value <= high:
            axes.plot([value], [place + height], marker="o", ms=4, mfc=POINT, mec=INK, mew=0.4)
    if math.isfinite(float(row["low"])):
        left, right = max(low, float(row["low"])), min(high, float(row["high"]))
        axes.plot([left, right], [place + 0.14] * 2, color=INK, lw=2.0, gid="interval")
        for end, leaves, marker in (
            (left, float(row["low"]) < low, "<"),
            (right, float(row["high"]) > high, ">"),
        ):
            if leaves:
                axes.plot([end], [place + 0.14], marker=marker, ms=5, color=INK, clip_on=False)
    if blocks and low <= float(row["share"]) <= high:
        axes.plot([float(row["share"])], [place + 0.14], marker="s", ms=5, color=INK)
    if math.isfinite(float(row["published"])):
        axes.plot([float(row["published"])], [place + 0.32], marker="D", ms=5, mfc="white",
                  mec=CLAIMED, mew=1.3, gid="published")  # fmt: skip


def _numbers(row: Mapping[Hashable, Any]) -> list[str]:
    words = []
    if math.isfinite(float(row["low"])):
        words.append(f"{row['share']:.0%} [{row['low']:.0%}, {row['high']:.0%}]")
    left_out = f", {int(row['left_out'])} left out" if row["left_out"] else ""
    words.append(f"n = {counted(int(row['n']), 'block')}{left_out}")
    if math.isfinite(float(row["published"])):
        words.append(f"published {row['published']:.0%}")
    return words


def _words(axes: Axes, place: float, row: Mapping[Hashable, Any], high: float) -> None:
    """Write verdict and numbers at the right of a row."""
    verdict = wrap(str(row["verdict"]), 8, RIGHT_IN - 0.1)
    width = axes.get_xlim()[1] - axes.get_xlim()[0]
    text, below = "\n".join(_numbers(row)), LINE * len(verdict)
    axes.text(high + 0.02 * width, place - 0.46, "\n".join(verdict), size=8, weight="bold",
              va="top", linespacing=1.15)  # fmt: skip
    axes.text(high + 0.02 * width, place - 0.44 + below, text, size=7.5, va="top", linespacing=1.25,
              bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # fmt: skip


def _key(published: bool) -> list[Line2D]:
    handles = [
        Line2D([], [], ls="", marker="o", ms=4, mfc=POINT, mec=INK, mew=0.4, label="one block"),
        Line2D([], [], color=INK, marker="s", ms=5, lw=2.0, label="estimate and 95% interval"),
        Line2D([], [], color=MUTED, ls="--", lw=1.0, label="limit of the rule"),
    ]
    if published:
        handles.append(Line2D([], [], ls="", marker="D", ms=5, mfc="white", mew=1.3,
                              mec=CLAIMED, label="published"))  # fmt: skip
    return handles


CLAIMED_SHARES = View("claimed_shares", TITLE, shares_table, draw_shares, suits=has_all_commits,
                      judging=Judging(tuple(CLAIMS), judged_claims))  # fmt: skip
