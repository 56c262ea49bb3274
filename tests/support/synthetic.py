"""Runs with a planted truth, written through the real store: no service, no load.

``write_run(root)`` gives six blocks of two treatments, the second with 1.6 times the throughput of
the first. Requests come from a closed loop (each user sends when its last answer is there), so
throughput, response time and Little's law agree as they do in a measured run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from perflab import systems
from perflab.instruments.profiler import watched_columns, watched_samples
from perflab.recordings import (
    Contrast,
    Reason,
    Run,
    RunRecord,
    RunWriter,
    TreatmentRecord,
)
from perflab.recordings.responses import drift_column
from perflab.trials.summary import identity_columns
from tests.support.planted_trial import USERS, Planted, PlantedTrial

HOUR_NS = 3_600_000_000_000
DIED = Reason(code="service.failed", side="server", text="service 'postgres': died (planted)")
BUSY = Reason(code="generator.cpu", side="client", text="the client used 97% of its cores")
ON_AND_OFF = (
    Planted({"synchronous_commit": "on"}, 1.0, "synchronous_commit=on"),
    Planted({"synchronous_commit": "off"}, 1.6, "synchronous_commit=off"),
)
NO_WRITE = Planted({"database_write": "no", "synchronous_commit": "none"}, 3.0, "no write")
# What a contrast that nobody published a number of has.
UNPUBLISHED = {"published_ratio": None, "published_direction": None, "source": ""}


def variants(count: int, step: float = 1.15) -> tuple[Planted, ...]:
    """Return ``count`` treatments of one factor, each ``step`` times as fast as the last."""
    return tuple(
        Planted({"variant": f"v{n}"}, step**n, f"variant {n} of the service") for n in range(count)
    )


def contrast_of(numerator: Planted, denominator: Planted, /, **changes: Any) -> Contrast:
    """Return a throughput contrast that claims the planted ratio."""
    fields: dict[str, Any] = {
        "name": f"{numerator.name} against {denominator.name}",
        "claim": "the second treatment gives more throughput",
        "response": "throughput_rps",
        "numerator": numerator.levels,
        "denominator": denominator.levels,
        "published_ratio": 511 / 320,
        "published_direction": "greater",
        "source": "inference study, results table",
    }
    return Contrast(**{**fields, **changes})


# A planted run need not survive a crash of the machine.
@patch("os.fsync", new=lambda _: None)
def write_run(
    root: Path,
    *,
    treatments: Sequence[Planted] = ON_AND_OFF,
    blocks: int = 6,
    requests: int = 400,
    noise: float = 0.03,
    block_noise: float = 0.10,
    database: bool = True,
    invalid: Collection[tuple[int, int]] = (),
    failed: Collection[tuple[int, int]] = (),
    drifts: Mapping[int, Sequence[float]] | None = None,
    contrasts: Sequence[Contrast] | None = None,
    experiment: str = "synchronous_commit",
    state: str = "finished",
    seed: int = 1,
    run_id: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    measured: int | None = None,
) -> Run:
    """Write a complete run and return it, opened.

    Parameters
    ----------
    requests : int
        Measured requests per trial.
    noise, block_noise : float
        Standard deviation of the log of throughput per trial, and per block (shared by its
        trials, so that pairing within blocks removes it).
    invalid, failed : collection of (block, treatment index)
        Trials of these states; a failed one has a row and no requests.
    drifts : mapping of treatment index to a sequence of float
        By how much (log ratio of a load's end to the whole) throughput changes, in each block.
    contrasts : sequence of Contrast, optional
        By default the second treatment against the first.
    parameters : mapping, optional
        What the record says that was asked for.
    measured : int, optional
        How many blocks have trials, from the first on; by default all.
    """
    rng = np.random.default_rng(seed)
    if contrasts is None:
        contrasts = [contrast_of(treatments[1], treatments[0])] if len(treatments) > 1 else []
    orders = [list(rng.permutation(len(treatments))) for _ in range(blocks)]
    record = _record(treatments, orders, experiment, contrasts, seed, run_id)
    if parameters is not None:
        record = record.model_copy(update={"parameters": dict(parameters)})
    writer = RunWriter.create(root, record)
    clock_ns = HOUR_NS
    for block, order in enumerate(orders[:measured]):
        block_effect = float(np.exp(rng.normal(0, block_noise)))
        for position, index in enumerate(order):
            planted = treatments[index]
            rate = 320.0 * planted.ratio * block_effect * float(np.exp(rng.normal(0, noise)))
            row = _identity(block, position, planted)
            if (block, index) in failed:
                row |= {"state": "failed", "reasons": [DIED]}
                writer.commit_trial(row, None, None)
                continue
            trial = PlantedTrial(rng, planted, rate, requests, database, clock_ns)
            clock_ns = trial.end_ns + 500_000_000
            row |= trial.row()
            if drifts is not None:
                row[drift_column("throughput_rps")] = drifts.get(index, [0.0] * blocks)[block]
            if (block, index) in invalid:
                row |= {"state": "invalid", "reasons": [BUSY]}
            writer.commit_trial(row, trial.requests, trial.samples, waits=trial.waits)
    reason = "" if state in ("finished", "running") else "planted by a test"
    writer.update(state=state, reason=reason, finished_at="2026-01-02T03:14:05Z")
    return Run(writer.path)


def _record(
    treatments: Sequence[Planted],
    orders: list[list[int]],
    experiment: str,
    contrasts: Sequence[Contrast],
    seed: int,
    run_id: str | None,
) -> RunRecord:
    factors: dict[str, list[str]] = {}
    for planted in treatments:
        for factor, level in planted.levels.items():
            levels = factors.setdefault(factor, [])
            if level not in levels:
                levels.append(level)
    return RunRecord(
        run_id=run_id or f"20260102T030405Z-{experiment}-{seed:06x}",
        experiment=experiment,
        system=systems.system_of(experiment) if experiment in systems.names() else "",
        title="Durability: synchronous_commit on against off",
        question="How much throughput does waiting for the commit's disk flush cost?",
        state="running",
        created_at="2026-01-02T03:04:05Z",
        parameters={"requests": 400, "concurrency": USERS, "driver": "psycopg2", "seed": seed},
        factors=factors,
        treatments=[
            TreatmentRecord(name=p.name, levels=p.levels, label=p.label or p.name)
            for p in treatments
        ],
        blocks=len(orders),
        seed=seed,
        order=[[treatments[index].name for index in order] for order in orders],
        backend="process",
        network_path="loopback",
        placement={
            "services": [0],
            "database": [0],
            "link": [0],
            "client": [1],
            "sampler": [1],
            "shared": "2 cores: service, database and link share core 0",
        },
        contrasts=list(contrasts),
        environment={"machine": {"cpu": "synthetic", "cores": 2}},
        code={
            "commit": "0123456789abcdef0123456789abcdef01234567",
            "dirty": False,
            "fingerprint": "planted",
        },
        sessions=[
            {
                "boot_id": "synthetic",
                "monotonic_ns": HOUR_NS,
                "realtime_ns": 1_767_323_045_000_000_000,
                "pid": 1,
                "at": "2026-01-02T03:04:05Z",
            }
        ],
    )


def _identity(block: int, position: int, planted: Planted) -> dict[str, Any]:
    return {
        **identity_columns(block, position, 0, planted.name, planted.levels),
        "started_at": f"2026-01-02T03:{block % 60:02d}:{position % 60:02d}Z",
        "state": "valid",
        "reasons": [],
    }


def profiled_run(
    root: Path,
    chains: Mapping[str, Mapping[str, int]],
    *,
    noise: float = 0.0,
    seen_share: Mapping[str, float] | None = None,
    watch: Mapping[str, Mapping[str, str]] | None = None,
    blocks: int = 6,
) -> Run:
    """Write a run of treatments with planted call chains per trial, give or take noise.

    ``seen_share`` is the share of the profiler's looks that found a thread running; ``watch`` holds
    the watched functions of each treatment, at 100 looks a second and 1000 messages delivered.
    """
    planted = [Planted({"variant": name}, label=f"variant {name}") for name in chains]
    model = write_run(
        root / "model", treatments=planted, blocks=blocks, requests=10, experiment="profile"
    ).record
    record = model.model_copy(update={"run_id": f"{model.run_id}-profiled", "contrasts": []})
    writer = RunWriter.create(root, record)
    rng = np.random.default_rng(11)
    for block in range(blocks):
        for place, treatment in enumerate(planted):
            own = chains[treatment.levels["variant"]]
            row = _identity(block, place, treatment)
            seen = {
                chain: round(count * float(np.exp(rng.normal(0, noise))))
                for chain, count in own.items()
            }
            share = (seen_share or {}).get(treatment.levels["variant"], 0.5)
            looks = round(sum(own.values()) / share)
            row |= {"cpu_share_chat": share, "profiler_looks": looks, "profiler_node": "chat"}
            table = pd.DataFrame(seen.items(), columns=["chain", "samples"])
            found = watched_samples(table, (watch or {}).get(treatment.levels["variant"], {}))
            row |= watched_columns(found, sum(seen.values()), rate_hz=100, messages=1000)
            writer.commit_trial(row, None, None, calls=table)
    return Run(writer.path)
