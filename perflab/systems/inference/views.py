"""The views of the inference service's runs, with those of the flush map and of claimed shares."""

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
from perflab.figures import (
    CORE_TIME,
    DATABASE_WAITS,
    EFFECT,
    FLUSH_COST,
    IN_FLIGHT,
    LATENCY_CPU,
    LATENCY_ECDF,
    rate_view,
    throughput_view,
    time_breakdown_view,
)
from perflab.figures.canvas import LabFigure
from perflab.figures.charts import Axis, Intervals, Lines, Marks, Plane, Planes, RowChart, Rules
from perflab.figures.origin import Page
from perflab.figures.theme import INK, MUTED, PALETTE, Look, appearance, wrap
from perflab.figures.view import OTHER_LOAD, SAME_LOAD, Judging, View, varies
from perflab.recordings import Run, published
from perflab.statistics.in_words import counted
from perflab.systems.inference.experiments.flush_map import (
    DRIVER,
    FACTORS,
    FLUSH,
    INSIDE,
    flush_map,
)
from perflab.systems.inference.stacks import COMMITS, DRIVERS, STUDY, TABLE, LoadParameters
from perflab.systems.inference.time_shares import (
    CLAIMS,
    Share,
    has_all_commits,
    judged_claims,
    judged_shares,
    shares,
)

MEASURES = {"throughput_rps": "throughput", "mean_ms": "mean_latency"}
LOAD = ("concurrency", "connection")
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
    """A layer that draws each row's limit, and the side of it on which the claim holds."""

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
        f" picture, and points beyond it stand at its edge.{_reasons(table)}",
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
    drawn = _as_drawn(table)
    return chart.draw(drawn.assign(value=drawn["value"].clip(low, high)), page)


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


MAP_TITLE = "where the published ratios would appear"
# A commit may feel nothing, which a logarithmic axis cannot show.
LEAST_MS = 0.1
FELT = ["felt_ms", "felt_low", "felt_high"]
RATIOS = {FLUSH: "commit off / on, throughput", DRIVER: "asyncpg / psycopg2, throughput"}
CELL, NO_EFFECT = "cell", "no effect"


def draw_flush_map(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw a panel per ratio: a line per workers and distance, and the published ratio."""
    places = zip(table["workers"], table["round_trip_ms"], strict=True)
    table = table.assign(group=[f"{counted(n, 'worker')}, {ms:g} ms away" for n, ms in places])
    groups = enumerate(table["group"].unique())
    looks = {name: Look(*appearance(index), name) for index, name in groups}
    style: dict[str, Any] = {"by": "group", "looks": looks}
    x = Axis("what a commit felt, ms (log)", log=True)
    y = Axis("ratio of throughputs (log)", log=True)
    chart = Planes(
        MAP_TITLE,
        "Every point is one setting, with 95% intervals over blocks both ways. Across: what a"
        " commit felt of the flush and of the pause planted before it (median commit phase, on less"
        " off), not the pause that was set. Ringed: the published ratio lies in the interval, and"
        " no effect does not.",
        layers=(
            Rules((NO_EFFECT,), NO_EFFECT, along="y", ls="-"),
            Rules((PUBLISHED,), PUBLISHED, along="y", color=PALETTE[1]),
            Lines((CELL,), keyed=False, how={"lw": 0.9, "alpha": 0.6}, **style),
            Marks((INSIDE,), "o", "published in the interval", color=INK, hollow=True, size=10),
            Intervals((CELL,), "felt_low", "felt_high", lw=0.7, size=0, keyed=False, **style),
            Intervals((CELL,), along="y", lw=1.1, size=4.5, **style),
        ),
        planes={ratio: Plane(x, y, words) for ratio, words in RATIOS.items()},
        panel="ratio_of",
        x="felt_ms",
        y="ratio",
    )
    return chart.draw(_map_as_drawn(table), page)


def _map_as_drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each setting, its ring, each published ratio, and no effect."""
    cells = table.dropna(subset=["felt_ms", "ratio"]).sort_values("felt_ms")
    cells[FELT] = cells[FELT].clip(lower=LEAST_MS)
    published = table.drop_duplicates("ratio_of")[["ratio_of", "published"]]
    parts = [
        cells.assign(what=CELL),
        cells[cells["published_is"] == INSIDE].assign(what=INSIDE),
        published.rename(columns={"published": "ratio"}).assign(what=PUBLISHED),
        pd.DataFrame({"ratio_of": [*RATIOS], "ratio": 1.0, "what": NO_EFFECT}),
    ]
    return pd.concat(parts, ignore_index=True)


def published_absolutes(run: Run, response: str) -> pd.DataFrame:
    """Return the published values of a response (throughput_rps or mean_ms), by treatment.

    Columns: treatment, value, load (whether the run's load and pool are the published ones). The
    published mean latency is ab's, concurrency / throughput: the mean response time of a closed
    loop without think time. Treatments without a published value have no row.
    """
    table = published(STUDY)
    table = table[(table["place"] == TABLE) & (table["measure"] == MEASURES.get(response, ""))]
    values = table.set_index("scenario")["value"].astype(float)
    rows = []
    for treatment in run.record.treatments:
        row = scenario(run.record.experiment, treatment.levels, run.record.parameters)
        if row is not None and row in values:
            load = SAME_LOAD if _is_published_load(run, row) else OTHER_LOAD
            rows.append({"treatment": treatment.name, "value": values[row], "load": load})
    return pd.DataFrame(rows, columns=["treatment", "value", "load"])


def scenario(
    experiment: str, levels: Mapping[str, str], parameters: Mapping[str, object]
) -> str | None:
    """Return the row of the published results that a treatment repeats, or None.

    The durability study does not state its workers and pool, so any match it. The driver study had
    a database next door and 4 workers; its pool's minimum and meaning are not stated.
    """
    if experiment == "sync_vs_async":
        is_near = levels.get("round_trip_ms") == "0" and levels.get("workers", "4") == "4"
        waits = parameters.get("synchronous_commit", "on") == "on"
        return DRIVERS.get(levels.get("driver", "")) if is_near and waits else None
    if experiment == "inference_runtime":
        has_onnx = levels.get("runtime") == "onnx"
        writes = {"yes": COMMITS["on"], "no": COMMITS["none"]}
        return writes.get(levels.get("database_write", "")) if has_onnx else None
    is_usual = parameters.get("driver", "psycopg2") == "psycopg2" and "rate" not in levels
    if experiment == "synchronous_commit" and is_usual and not parameters.get("round_trip_ms"):
        return COMMITS.get(levels.get("synchronous_commit", ""))
    return None


def _is_published_load(run: Run, row: str) -> bool:
    stated = LoadParameters.published_values()
    names = (*LOAD, "pool_size") if row in DRIVERS.values() else LOAD
    return all(run.record.parameters.get(name) == stated[name] for name in names)


FLUSH_MAP = View("flush_map", MAP_TITLE, flush_map, draw_flush_map, varies(*FACTORS))
CLAIMED_SHARES = View("claimed_shares", TITLE, shares_table, draw_shares, suits=has_all_commits,
                      judging=Judging(tuple(CLAIMS), judged_claims))  # fmt: skip
LATENCY_RATE = rate_view(
    "latency_rate",
    "response times against the rate of requests",
    {f"p{share}_ms": f"p{share}, ms (log)" for share in (50, 95, 99)},
)

VIEWS = (
    EFFECT,
    LATENCY_RATE,
    FLUSH_MAP,
    CLAIMED_SHARES,
    throughput_view(published_absolutes),
    LATENCY_ECDF,
    time_breakdown_view(published_absolutes),
    CORE_TIME,
    IN_FLIGHT,
    DATABASE_WAITS,
    LATENCY_CPU,
    FLUSH_COST,
)
