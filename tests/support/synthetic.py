"""Runs with a planted truth, written through the real store: no service, no load.

``write_run(root)`` gives six blocks of two treatments, the second with 1.6 times the throughput of
the first. Requests come from a closed loop (each user sends when its last answer is there), so
throughput, response time and Little's law agree as they do in a measured run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from perflab import systems
from perflab.instruments.profiler import watched_columns, watched_samples
from perflab.instruments.requests import phase_columns
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

USERS = 20
WARMUP_SHARE = 0.2
HOUR_NS = 3_600_000_000_000
# Shares of the time inside the application; the rest of it is unaccounted.
PHASES = {"threadpool": 0.10, "inference": 0.15, "pool": 0.10, "execute": 0.15, "commit": 0.45}
APP_SHARE = 0.9
# How much a service's CPU share rises when response times do.
CPU_FOLLOWS_LATENCY = 0.5
DATABASE_PHASES = ("pool", "execute", "commit")
DIED = Reason(code="service.failed", side="server", text="service 'postgres': died (planted)")
BUSY = Reason(code="generator.cpu", side="client", text="the client used 97% of its cores")


@dataclass(frozen=True)
class Planted:
    """A treatment and its true throughput as a multiple of the base rate."""

    levels: dict[str, str]
    ratio: float = 1.0
    label: str = ""
    phases: dict[str, float] = field(default_factory=lambda: dict(PHASES))

    @property
    def name(self) -> str:
        return ",".join(f"{factor}={level}" for factor, level in self.levels.items())


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


class PlantedTrial:
    """The tables of one trial with a given rate."""

    def __init__(
        self,
        rng: np.random.Generator,
        planted: Planted,
        rate_rps: float,
        count: int,
        database: bool,
        start_ns: int,
    ) -> None:
        self._rng = rng
        self._database = database
        self._warmup = max(USERS, int(count * WARMUP_SHARE))
        self.requests = self._sent(planted, rate_rps, count, start_ns)
        measured = self.requests[self.requests["stage"] == "measure"]
        self.begin_ns = int(measured["planned_ns"].min())
        self.end_ns = int(measured["done_ns"].max())
        self.measured = measured
        self.samples = self._sampled(start_ns)
        self.waits = self._waited() if database else None
        self.flush_us = list(rng.lognormal(np.log(900), 0.3, 10)) if database else []

    def _sent(self, planted: Planted, rate_rps: float, count: int, start_ns: int) -> pd.DataFrame:
        """Answers leave at exponential gaps; a user's next request is planned at its answer."""
        total = self._warmup + count
        gaps_s = self._rng.exponential(1.0, total)
        gaps_s[self._warmup :] *= count / gaps_s[self._warmup :].sum()
        done = start_ns + np.cumsum(gaps_s / rate_rps * 1e9).astype(np.int64)
        planned = np.concatenate([np.full(USERS, start_ns), done[:-USERS]])[:total]
        # The stage begins when its first request is planned: as warm-up users finish.
        measure = np.arange(total) >= self._warmup
        started = planned + self._rng.integers(2_000, 40_000, total)
        connect = self._rng.integers(60_000, 160_000, total)
        sent = np.minimum(started + connect, done - 1)
        service_ms = (done - sent) / 1e6
        frame = {
            "stage": np.where(measure, "measure", "warmup"),
            "worker": np.zeros(total, np.int16),
            "user": (np.arange(total) % USERS).astype(np.int32),
            "planned_ns": planned,
            "started_ns": np.minimum(started, sent),
            "sent_ns": sent,
            "first_byte_ns": np.maximum(sent, done - 20_000),
            "done_ns": done,
            "connect_ns": sent - np.minimum(started, sent),
            "status": np.full(total, 200, np.int16),
            "bytes": np.full(total, 64, np.int64),
            "error": np.full(total, ""),
        }
        return pd.DataFrame({**frame, **self._phases(planted, service_ms)})

    def _phases(self, planted: Planted, service_ms: np.ndarray) -> dict[str, np.ndarray]:
        app_ms = service_ms * APP_SHARE
        phases = {"phase_app_ms": app_ms.astype(np.float32)}
        for name, share in planted.phases.items():
            if self._database or name not in DATABASE_PHASES:
                spread = self._rng.uniform(0.9, 1.05, len(app_ms))
                phases[f"phase_{name}_ms"] = (app_ms * share * spread).astype(np.float32)
        return phases

    def _sampled(self, start_ns: int) -> pd.DataFrame:
        instants = np.arange(start_ns, self.end_ns + 50_000_000, 50_000_000)
        response = (self.requests["done_ns"] - self.requests["planned_ns"]).to_numpy()
        local = np.interp(
            instants,
            self.requests["done_ns"],
            pd.Series(response).rolling(USERS, min_periods=1).mean(),
        )
        relative = local / local.mean() - 1
        shares = {
            "inference": 0.5 + CPU_FOLLOWS_LATENCY * relative,
            "link": np.full(len(instants), 0.05),
            "client": np.full(len(instants), 0.25),
            "lab": np.full(len(instants), 0.04),
            "core 0": np.full(len(instants), 0.8),
            "core 1": np.full(len(instants), 0.3),
        }
        if self._database:
            shares["postgres"] = 0.2 + 0.3 * CPU_FOLLOWS_LATENCY * relative
        frames = []
        for service, share in shares.items():
            noisy = np.clip(share + self._rng.normal(0, 0.03, len(instants)), 0.01, None)
            frames.append(
                pd.DataFrame(
                    {
                        "t_ns": instants,
                        "service": service,
                        "cpu_ns": np.cumsum(noisy * 50_000_000).astype(np.int64),
                        "memory_bytes": 0 if service.startswith("core") else 50_000_000,
                    }
                )
            )
        return pd.concat(frames, ignore_index=True).sort_values("t_ns", ignore_index=True)

    def _waited(self) -> pd.DataFrame:
        instants = np.arange(self.begin_ns, self.end_ns, 100_000_000)
        kinds = [
            ("active", "IO", "WalSync"),
            ("active", "LWLock", "WALWrite"),
            ("idle", "Client", "ClientRead"),
        ]
        return pd.DataFrame(
            [
                {
                    "t_ns": t,
                    "state": state,
                    "wait_event_type": kind,
                    "wait_event": event,
                    "count": int(self._rng.integers(1, 12)),
                }
                for t in instants
                for state, kind, event in kinds
            ]
        )

    def row(self) -> dict[str, Any]:
        """Return the trial's row, computed from its tables as the lab does."""
        # The closed loop keeps USERS in flight from the last warm-up answer on.
        edge_ns = int(self.requests["done_ns"].iloc[self._warmup - 1])
        seconds = (self.end_ns - edge_ns) / 1e9
        response_ms = (self.measured["done_ns"] - self.measured["planned_ns"]) / 1e6
        service_ms = (self.measured["done_ns"] - self.measured["sent_ns"]) / 1e6
        lag_ms = (self.measured["started_ns"] - self.measured["planned_ns"]) / 1e6
        count = len(self.measured)
        row: dict[str, Any] = {
            "begin_ns": edge_ns,
            "end_ns": self.end_ns,
            "requests": count,
            "errors": 0,
            "throughput_rps": count / seconds,
            "mean_ms": response_ms.mean(),
            **{f"p{p}_ms": float(np.percentile(response_ms, p)) for p in (50, 90, 95)},
            **phase_columns(self.requests),
            "p99_ms": float(np.percentile(response_ms, 99)) if count >= 368 else float("nan"),
            "service_mean_ms": service_ms.mean(),
            "generator_lag_p50_ms": lag_ms.median(),
            "generator_lag_p99_ms": lag_ms.quantile(0.99),
            "loop_delay_p99_ms": 0.4,
            "loop_delay_max_ms": 1.1,
            "unsent": 0,
            "client_cpu_share": 0.25,
            "client_cpu_us_per_request": 90.0,
            "littles_law_ratio": 1.0,
            "server_count": count if self._database else -1,
            "idle_cpu_share": 0.0,
            "steal_share": 0.0,
            "cpu_probe_before_ms": 5.0,
            "cpu_probe_after_ms": 5.0,
            "flush_us": self.flush_us,
            "flush_p50_us": float(np.percentile(self.flush_us, 50)) if self.flush_us else np.nan,
            "flush_p99_us": float(np.percentile(self.flush_us, 99)) if self.flush_us else np.nan,
        }
        for service, own in self.samples.groupby("service"):
            used = np.interp([edge_ns, self.end_ns], own["t_ns"], own["cpu_ns"])
            if not str(service).startswith("core"):
                row[f"cpu_share_{service}"] = (used[1] - used[0]) / (self.end_ns - edge_ns)
                row[f"memory_{service}_bytes"] = int(own["memory_bytes"].max())
            if service in ("inference", "postgres", "link"):
                row[f"run_share_{service}"] = row[f"cpu_share_{service}"]
                row[f"core_wait_share_{service}"] = 4 * row[f"cpu_share_{service}"]
        return row


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
