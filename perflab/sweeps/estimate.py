"""What a sweep takes, told from earlier runs: time and disk, or that nobody knows."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from perflab.recordings import FREE_PARAMETERS, Run
from perflab.sweeps.cells import Cell

NEWEST = 5


@dataclass(frozen=True)
class Estimate:
    """Seconds and bytes of one cell, and from what; None where no run tells."""

    seconds: float | None
    size_bytes: float | None
    source: str


@dataclass(frozen=True)
class Past:
    """What an earlier run took, per trial."""

    experiment: str
    parameters: dict[str, Any]
    backend: str
    seconds: float
    size_bytes: float


def past_runs(runs: Iterable[Run]) -> list[Past]:
    """Return what earlier runs took: of those that finished in one session.

    A run that was resumed also holds the time in which nobody measured.
    """
    found = []
    for run in runs:
        record = run.record
        trials = sum(map(len, record.order))
        if record.state != "finished" or len(record.sessions) > 1 or not trials:
            continue
        seconds = _seconds(record.created_at, record.finished_at)
        found.append(
            Past(
                record.experiment,
                {k: v for k, v in record.parameters.items() if k not in FREE_PARAMETERS},
                record.backend,
                seconds / trials,
                _size_bytes(run.path) / trials,
            )
        )
    return found


def estimated(cell: Cell, past: Sequence[Past]) -> Estimate:
    """Return what a cell will take: its trials, at the median pace of the newest like it.

    Runs with the same parameters are taken where there are any, else all of the experiment.
    """
    same_kind = [each for each in past if each.experiment == cell.notebook and _fits(cell, each)]
    alike = [each for each in same_kind if _asked_alike(cell, each)]
    chosen = (alike or same_kind)[-NEWEST:]
    if not chosen:
        return Estimate(None, None, "no earlier run")
    of = "of these parameters" if alike else "of other parameters"
    return Estimate(
        cell.trials * statistics.median(each.seconds for each in chosen),
        cell.trials * statistics.median(each.size_bytes for each in chosen),
        f"{len(chosen)} run{'s' if len(chosen) > 1 else ''} {of}",
    )


def _fits(cell: Cell, past: Past) -> bool:
    return cell.parameters.get("backend", "auto") in ("auto", past.backend)


def _asked_alike(cell: Cell, past: Past) -> bool:
    return all(
        past.parameters.get(name) == value
        for name, value in cell.asked.items()
        if name not in FREE_PARAMETERS
    )


def _seconds(began: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()


def _size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
