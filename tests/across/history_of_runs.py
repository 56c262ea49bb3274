"""Runs of one experiment over days, with commits, machines and a planted change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perflab.recordings import RunWriter
from tests.synthetic import ON_AND_OFF, Planted, write_run

THIS = {"cpu": "synthetic", "cores": 2}
OTHER = {"cpu": "another", "cores": 8, "memory_bytes": 16 * 2**30, "kernel": "6.1"}


def add_run(root: Path, day: int, *, ratio: float = 1.6, **changes: Any) -> Path:
    """Write a small run of a day whose second treatment is ``ratio`` times as fast.

    ``changes`` are fields of the record; ``machine`` and ``commit`` stand for themselves.
    """
    machine, commit = changes.pop("machine", THIS), changes.pop("commit", f"{day:040x}")
    planted = (ON_AND_OFF[0], Planted(ON_AND_OFF[1].levels, ratio, ON_AND_OFF[1].label))
    run = write_run(
        root,
        treatments=planted,
        blocks=2,
        requests=60,
        seed=day,
        database=False,
        run_id=changes.pop("run_id", f"day{day:02d}-{changes.get('backend', 'process')}"),
        block_noise=0.02,
        state=changes.pop("state", "finished"),
        experiment=changes.pop("experiment", "synchronous_commit"),
    )
    RunWriter.reopen(run.path).update(
        created_at=f"2026-03-{day + 1:02d}T03:04:05Z",
        environment={"machine": machine},
        code={"commit": commit, "dirty": False, "fingerprint": commit[-4:]},
        **changes,
    )
    return run.path


def add_days(root: Path, days: int, changed_from: int = 99, **changes: Any) -> None:
    """Write a run for each day; from ``changed_from`` on the effect is smaller by a quarter."""
    for day in range(days):
        add_run(root, day, ratio=1.6 if day < changed_from else 1.2, **changes)
