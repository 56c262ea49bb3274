"""Recorded runs of known shape, small enough to be drawn many times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.recordings import Run, RunRecord, RunWriter, TreatmentRecord, trial_id

LONG = "runtime = onnx, database write = yes, synchronous_commit = {}, pool minconn = {}"
SECOND = 1_000_000_000
REQUESTS = 400
SHARES = {"threadpool": 0.1, "inference": 0.05, "pool": 0.2, "execute": 0.15, "commit": 0.3}


def record_run(
    root: Path,
    *,
    treatments: int = 2,
    blocks: int = 6,
    database: bool = True,
    states: dict[tuple[int, int], str] | None = None,
    every_state: str = "valid",
    commit: bool = True,
) -> Run:
    """Write a run; ``states`` gives the state of (block, treatment) where it is not the usual."""
    rng = np.random.default_rng(5)
    names = [f"t{index}" for index in range(treatments)]
    labels = (
        ["synchronous_commit = on", "synchronous_commit = off"]
        if treatments == 2
        else [LONG.format("on" if index % 2 else "off", index) for index in range(treatments)]
    )
    orders = [list(rng.permutation(treatments)) for _ in range(blocks)]
    run_id = "20260102T030405Z-synthetic-0a1b2c"
    record = RunRecord(
        run_id=run_id, experiment="synthetic", title="Cost of a synchronous commit",
        question="What does a synchronous commit cost?", state="finished",
        created_at="2026-01-02T03:04:05Z", parameters={"concurrency": 50, "rtt_ms": [0.0, 5.0]},
        treatments=[
            TreatmentRecord(name=name, levels={"synchronous_commit": name}, label=label)
            for name, label in zip(names, labels, strict=True)
        ],
        blocks=blocks, seed=4242, order=[[names[i] for i in order] for order in orders],
        backend="process", network_path="loopback, no proxy",
        placement={"services": [0], "client": [1], "shared": "2 cores: service, database and link "
                   "share core 0; client, sampler and conductor share core 1"},
        code={"commit": "0123456789abcdef", "dirty": True, "fingerprint": "f"},
        warnings=["the flush cost of the disk changed | by 4x"],
    )
    writer = RunWriter.create(root, record)
    begin = 10 * SECOND
    for block, order in enumerate(orders if commit else []):
        for position, index in enumerate(order):
            state = (states or {}).get((block, int(index)), every_state)
            _commit(writer, rng, block, position, int(index), names[index], state, begin, database)
            begin += 5 * SECOND
    return Run(root / run_id)


def _commit(writer, rng, block, position, index, name, state, begin, database) -> None:
    mean_ms = 150 / (1 + 0.6 * (index % 2) + 0.05 * index) * np.exp(rng.normal(0, 0.07))
    response_ms = mean_ms * np.exp(rng.normal(0, 0.35, REQUESTS))
    done = state != "failed"
    flush_us = list(rng.lognormal(np.log(900), 0.5, 20)) if database else []
    row = {
        "trial_id": trial_id(block, position, 1), "block": block, "position": position,
        "attempt": 1, "treatment": name, "state": state,
        "reasons": [] if state == "valid" else [f"{state} on purpose | for the test"],
        "begin_ns": begin, "end_ns": begin + 3 * SECOND, "started_at": "2026-01-02T03:04:05Z",
        "requests": REQUESTS, "errors": 0 if done else REQUESTS,
        "throughput_rps": 50_000 / mean_ms if done else np.nan,
        "mean_ms": response_ms.mean() if done else np.nan,
        **{f"p{q}_ms": np.percentile(response_ms, q) if done else np.nan for q in (50, 90, 95, 99)},
        "service_mean_ms": response_ms.mean() - 0.4 if done else np.nan,
        "cpu_share_inference": 0.5, "cpu_share_postgres": 0.2, "server_count": REQUESTS,
        "generator_lag_p99_ms": 0.2, "client_cpu_share": 0.3, "flush_us": flush_us,
        "flush_p50_us": np.median(flush_us) if database else np.nan,
        "flush_p99_us": np.nan, "cpu_probe_ms": 3.0, "steal_share": 0.0,
    }
    services = {"inference": 0.5, "postgres": 0.2} if database else {"inference": 0.5}
    writer.commit_trial(
        row,
        _requests(rng, begin, response_ms, index, database) if done else None,
        _samples(rng, begin, services),
    )


def _requests(rng, begin, response_ms, index, database) -> pd.DataFrame:
    planned = begin + np.sort(rng.uniform(0, 2.8 * SECOND, REQUESTS)).astype(np.int64)
    done = planned + (response_ms * 1e6).astype(np.int64)
    shares = {**SHARES, "commit": 0.05} if index % 2 else SHARES
    if not database:
        shares = {name: shares[name] for name in ("threadpool", "inference")}
    phases = {f"phase_{name}_ms": response_ms * share for name, share in shares.items()}
    return pd.DataFrame(
        {
            "stage": "measure", "worker": 0, "user": 0, "planned_ns": planned,
            "started_ns": planned + 20_000, "sent_ns": planned + 400_000,
            "first_byte_ns": done - 1_000, "done_ns": done, "connect_ns": 300_000, "status": 200,
            "bytes": 100, "error": "", **phases, "phase_app_ms": response_ms * 0.9,
        }
    )


def _samples(rng, begin, services) -> pd.DataFrame:
    instants = np.arange(begin - SECOND // 2, begin + 3 * SECOND, SECOND // 10)
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "t_ns": instants, "service": service, "memory_bytes": 1_000_000,
                    "cpu_ns": np.cumsum(rng.uniform(0.6, 1.4, len(instants)) * share * 1e8)
                    .astype(np.int64),
                }
            )
            for service, share in services.items()
        ],
        ignore_index=True,
    )


@pytest.fixture(scope="session")
def normal(tmp_path_factory) -> Run:
    """Two treatments, six blocks; one trial invalid, one failed."""
    states = {(2, 0): "failed", (4, 1): "invalid"}
    return record_run(tmp_path_factory.mktemp("normal"), states=states)


@pytest.fixture(scope="session")
def all_failed(tmp_path_factory) -> Run:
    return record_run(tmp_path_factory.mktemp("failed"), every_state="failed")


@pytest.fixture(scope="session")
def single(tmp_path_factory) -> Run:
    return record_run(tmp_path_factory.mktemp("single"), treatments=1, blocks=1)


@pytest.fixture(scope="session")
def no_database(tmp_path_factory) -> Run:
    return record_run(tmp_path_factory.mktemp("nodb"), database=False)


@pytest.fixture(scope="session")
def eight(tmp_path_factory) -> Run:
    return record_run(tmp_path_factory.mktemp("eight"), treatments=8, blocks=6)


@pytest.fixture(scope="session")
def empty(tmp_path_factory) -> Run:
    """A run that was interrupted before its first trial was committed."""
    return record_run(tmp_path_factory.mktemp("empty"), commit=False)
