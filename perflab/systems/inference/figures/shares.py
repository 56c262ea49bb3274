"""Claims about shares of time: every block, the estimate, the limit and the verdict."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from perflab.analysis.evaluation import Finding
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Marks, RowChart
from perflab.figures.origin import Page
from perflab.figures.theme import MUTED, PALETTE, wrap
from perflab.figures.view import Judging, View
from perflab.recordings import Run
from perflab.statistics.in_words import counted
from perflab.systems.inference.analysis.time_shares import (
    CLAIMS,
    Share,
    has_all_commits,
    judged_claims,
    judged_shares,
    shares,
)

TITLE = "claims 1, 3 and 4 as shares of time"
BLOCK, SHARE, PUBLISHED = "block", "share", "published"
SAID_IN = 1.5
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
    findings = judged_shares(run)
    return pd.DataFrame([_row(share, findings[share.name]) for share in shares()], columns=COLUMNS)


def _row(share: Share, finding: Finding) -> dict[str, object]:
    effect, published = finding.effect, finding.contrast.published_difference
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
        "left_out": finding.left_out,
        "of_blocks": " ".join(f"{value:.6g}" for value in effect.by_block) if effect else "",
        "verdict": str(finding.verdict),
        # The figure shows an interval, but not why a claim cannot be judged.
        "why": "" if finding.verdict.direction else finding.verdict.reason,
    }


@dataclass(frozen=True)
class Limits:
    """A layer that draws the limit of each row's rule, and the side on which its claim holds."""

    low: float
    high: float

    def draw(self, axes: Axes, rows: pd.DataFrame, page: Page) -> None:  # noqa: ARG002
        """Draw the limit of each row."""
        for row in rows[rows["of"] == SHARE].to_dict("records"):
            limit, height = row["limit"], [row["y"] - 0.56, row["y"] + 0.28]
            ends = (limit, self.high) if row["side"] == "above" else (self.low, limit)
            axes.fill_betweenx(height, *ends, color="#EEF3EE", lw=0, zorder=0)
            axes.plot([limit] * 2, height, color=MUTED, ls="--", lw=1.0, zorder=1, gid="limit")

    def key(self, table: pd.DataFrame, page: Page) -> list[Line2D]:  # noqa: ARG002
        """Return the line of a limit."""
        return [Line2D([], [], color=MUTED, ls="--", lw=1.0, label="limit of the rule")]


def draw_shares(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a row per claim."""
    low, high = _limits(table)
    step = 0.25 if high - low <= 1.4 else 0.5
    ticks = np.arange(math.ceil(low / step) * step, high + 1e-9, step)
    chart = RowChart(
        TITLE,
        "Every point is one block: on, off and no database write are in each. Dashed: the limit of"
        " the rule, fixed before the run; the claim holds on its shaded side. Its direction is"
        " shown where the whole 95% interval lies there. An arrow ends an interval that leaves the"
        f" picture.{_reasons(table)}",
        layers=(
            Limits(low, high),
            Marks((BLOCK,), "o", "one block", color=POINT, size=4),
            Intervals((SHARE,), within=(low, high), lw=2.0, label="estimate and 95% interval"),
            Marks((PUBLISHED,), "D", "published", color=CLAIMED, hollow=True),
        ),
        panels={"": Axis("share", ends=(low, high), ticks={at: f"{at:.0%}" for at in ticks})},
        row="name",
        labels=_labels,
        row_in=0.9,
        said=_right_texts,
    )
    return chart.draw(_as_drawn(table), page)


def _as_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each block, estimate and published value."""
    blocks = table.assign(value=table["of_blocks"].astype(str).str.split()).explode("value")
    blocks = blocks.assign(value=blocks["value"].astype(float)).dropna(subset=["value"])
    number, most = blocks.groupby("name").cumcount(), blocks["n"].clip(lower=2) - 1
    parts = [
        blocks.assign(of=BLOCK, aside=-0.34 + 0.32 * number / most),
        table.assign(of=SHARE, value=table["share"], aside=0.14),
        table.assign(of=PUBLISHED, value=table["published"], aside=0.32),
    ]
    drawn = pd.concat(parts, ignore_index=True)
    return drawn.assign(asked=drawn["what"], what=drawn["of"])


def _reasons(table: pd.DataFrame) -> str:
    """Say once why claims cannot be judged."""
    named: dict[str, list[str]] = {}
    for row in table[table["why"] != ""].to_dict("records"):
        named.setdefault(str(row["why"]), []).append(str(row["name"]))
    return "".join(f" {'; '.join(names)}: {why}." for why, names in named.items())


def _labels(drawn: pd.DataFrame, _: Page) -> dict[Hashable, str]:
    claims = drawn[drawn["of"] == SHARE].to_dict("records")
    return {row["name"]: f"{row['name']}: {row['claim']} ({row['asked']})" for row in claims}


def _limits(table: pd.DataFrame) -> tuple[float, float]:
    """Return limits that include 0, 1 and all blocks; intervals may leave the picture."""
    blocks = [float(value) for row in table["of_blocks"] for value in str(row).split()]
    return max(-1.0, min([0.0, *blocks])) - 0.03, min(2.0, max([1.0, *blocks])) + 0.03


def _right_texts(drawn: pd.DataFrame) -> dict[Hashable, str]:
    claims = drawn[drawn["of"] == SHARE].to_dict("records")
    return {row["name"]: "\n".join([*wrap(row["verdict"], 7, SAID_IN), *_numbers(row)])
            for row in claims}  # fmt: skip


def _numbers(row: Mapping[Hashable, Any]) -> list[str]:
    words = []
    if math.isfinite(row["low"]):
        words.append(f"{row['share']:.0%} [{row['low']:.0%}, {row['high']:.0%}]")
    left_out = f", {int(row['left_out'])} left out" if row["left_out"] else ""
    words.append(f"n = {counted(int(row['n']), 'block')}{left_out}")
    if math.isfinite(row["published"]):
        words.append(f"published {row['published']:.0%}")
    return words


CLAIMED_SHARES = View("claimed_shares", TITLE, shares_table, draw_shares, suits=has_all_commits,
                      judging=Judging(tuple(CLAIMS), judged_claims))  # fmt: skip
