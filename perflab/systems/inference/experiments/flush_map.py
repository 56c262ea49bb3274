"""How long must a flush take, and how few commits share it, for the published gain to appear?

A real disk takes milliseconds where the disk of a cloud machine takes a part of one. A library that
is preloaded into PostgreSQL makes each flush of its WAL last at least so long; the flush probe has
it, too. All commits that wait when a flush begins share it, so that many connections hide its
length: throughput is limited by flushes only where few commits are under way. The map shows what a
commit felt: the median commit phase with commit on, less that with commit off in the same block.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated

import pandas as pd
from pydantic import Field

from perflab.analysis.evaluation import Finding
from perflab.analysis.starts import effect_of_run
from perflab.recordings import Contrast, Remark, Run, stated
from perflab.statistics.in_words import counted
from perflab.systems.inference import stacks
from perflab.systems.inference.stacks import (
    COMMITS,
    STUDY,
    LoadParameters,
    WorkerLevels,
    published_rps,
)
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment
from perflab.trials.run_parameters import Blocks, Requests, WarmupRequests

FlushMs = Annotated[float, Field(ge=0, le=1000)]
PoolSize = Annotated[int, Field(ge=1, le=200)]
COMMIT = "synchronous_commit"
AS_THE_DISK = 0.0
FACTORS = ("flush_ms", "workers", "pool_size")
PHASE = "phase_commit_p50_ms"
MAP_COLUMNS = [
    "workers", "pool_size", "flush_ms", "felt_ms", "felt_low", "felt_high", "ratio", "low", "high",
    "n", "published", "result",
]  # fmt: skip


class FlushMapParameters(LoadParameters):
    """Parameters of the map: how long a flush takes at least, connections and workers."""

    # Ten claims at a time: with 8 blocks none of them could be certain.
    blocks: Blocks = 12
    requests: Requests = 500
    warmup_requests: WarmupRequests = 200
    flush_ms: tuple[FlushMs, ...] = Field(
        default=(AS_THE_DISK, 1.0, 2.0, 5.0, 10.0),
        min_length=1,
        description="levels to compare: how long a flush of the database takes at least, in ms; "
        "0: as long as the disk takes",
    )
    workers: WorkerLevels = (1,)
    pool_size: tuple[PoolSize, ...] = Field(
        default=(1, 50),
        min_length=1,
        description="levels to compare: connections to the database, over all workers together; "
        "fewer commits at a time share fewer flushes",
    )


def _factors(parameters: FlushMapParameters) -> dict[str, tuple[str, ...]]:
    return {
        COMMIT: ("on", "off"),
        "flush_ms": tuple(f"{ms:.12g}" for ms in parameters.flush_ms),
        "workers": tuple(map(str, parameters.workers)),
        "pool_size": tuple(map(str, parameters.pool_size)),
    }


def _cells(parameters: FlushMapParameters) -> list[dict[str, str]]:
    factors = _factors(parameters)
    chosen = product(*(factors[name] for name in FACTORS))
    return [dict(zip(FACTORS, levels, strict=True)) for levels in chosen]


def _treatment(parameters: FlushMapParameters, commit: str, cell: Mapping[str, str]) -> Treatment:
    plan = stacks.stack(
        parameters,
        workers=int(cell["workers"]),
        pool_size=int(cell["pool_size"]),
        flush_us=round(float(cell["flush_ms"]) * 1000),
        synchronous_commit=commit,
    )
    label = f"commit {commit}, {_in_words(cell)}"
    return stacks.treatment(
        parameters, {COMMIT: commit, **cell}, label, plan, stacks.endpoint("psycopg2")
    )


def _in_words(cell: Mapping[str, str]) -> str:
    ms = cell["flush_ms"]
    flush = f"flush of {ms} ms" if float(ms) else "the disk's flush"
    workers, pool = (int(cell[name]) for name in ("workers", "pool_size"))
    return f"{flush}, {counted(workers, 'worker')}, {counted(pool, 'connection')}"


def _contrasts(parameters: FlushMapParameters) -> list[Contrast]:
    """Return the study's effect in each cell; it states no disk, pool or workers."""
    off_rps, on_rps = (published_rps(COMMITS[level]) for level in ("off", "on"))
    return [
        Contrast(
            name=f"off against on, {_in_words(cell)}",
            claim=f"{stated(STUDY, 'effect off on')} ({_in_words(cell)})",
            response="throughput_rps",
            numerator={COMMIT: "off", **cell},
            denominator={COMMIT: "on", **cell},
            published_ratio=None
            if parameters.differences(**_stated(parameters))
            else off_rps / on_rps,
            published_direction="greater",
            source=f"inference study, results table ({off_rps:g} against {on_rps:g} requests/s)",
        )
        for cell in _cells(parameters)
    ]


def _stated(parameters: FlushMapParameters) -> dict[str, object]:
    """Return the levels of what the durability study does not state: any may have been its own."""
    published = parameters.published_values()
    return {"flush_ms": AS_THE_DISK, **{name: published[name] for name in ("workers", "pool_size")}}


def _warnings(parameters: FlushMapParameters) -> list[Remark]:
    return stacks.load_warnings(parameters, **_stated(parameters))


def flush_map(run: Run, findings: Sequence[Finding]) -> pd.DataFrame:
    """Return what commit off gains over on in each cell of the map.

    Columns: workers, pool_size, flush_ms (how long a flush takes at least), felt_ms with its 95%
    interval (the time that a commit felt of the flush), ratio of throughputs with its 95% interval,
    n (blocks), published, and result (beside the published ratio).
    """
    rows = []
    for finding in findings:
        cell = {name: finding.contrast.denominator[name] for name in FACTORS}
        effect = finding.effect
        rows.append(
            {
                "workers": int(cell["workers"]),
                "pool_size": int(cell["pool_size"]),
                "flush_ms": float(cell["flush_ms"]),
                **_felt_flush(run, cell),
                "ratio": effect.estimate if effect else math.nan,
                "low": effect.low if effect else math.nan,
                "high": effect.high if effect else math.nan,
                "n": effect.n if effect else 0,
                "published": finding.contrast.published_ratio or math.nan,
                "result": finding.verdict.result.value,
            }
        )
    return pd.DataFrame(rows, columns=MAP_COLUMNS)


def _felt_flush(run: Run, cell: Mapping[str, str]) -> dict[str, float]:
    """Return the time that a commit felt of the flush, in ms, over blocks."""
    on, off = (_by_block(run, {COMMIT: commit, **cell}) for commit in ("on", "off"))
    added = on - off
    if not added.notna().any():
        return dict.fromkeys(("felt_ms", "felt_low", "felt_high"), math.nan)
    effect = effect_of_run(run, added, scale="difference")
    return {"felt_ms": effect.estimate, "felt_low": effect.low, "felt_high": effect.high}


def _by_block(run: Run, levels: Mapping[str, str]) -> pd.Series[float]:
    trials = run.valid_trials()
    rows = trials[trials["treatment"].isin(run.record.selected(dict(levels)))]
    blocks = pd.RangeIndex(run.judged_blocks)
    if PHASE not in rows:
        return pd.Series(math.nan, index=blocks)
    return rows.set_index("block")[PHASE].astype(float).reindex(blocks)


EXPERIMENT = Experiment(
    name="flush_map",
    title="Where the published gain would appear: cost of a flush, connections, workers",
    question="How long must a flush take, and how few commits share it, for the published gain of "
    "synchronous_commit=off to appear?",
    parameters=FlushMapParameters,
    treatments=lambda parameters: stacks.with_room(
        [
            _treatment(parameters, commit, cell)
            for cell in _cells(parameters)
            for commit in ("on", "off")
        ]
    ),
    contrasts=_contrasts,
    warnings=_warnings,
)
