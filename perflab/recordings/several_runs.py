"""The trials of several runs as one tidy table, for pandas."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import pandas as pd

from perflab.display import plain
from perflab.recordings.reader import Run
from perflab.recordings.selection import question_of
from perflab.recordings.tables import KINDS_OF_REMARK, TRIAL

ID_LENGTH = 8
OF_RUN = (
    "run", "experiment", "backend", "run_state", "created_at", "commit", "dirty", "machine",
    "question_id",
)  # fmt: skip


def trials_of_runs(runs: Sequence[Run]) -> pd.DataFrame:
    """Return a row per committed trial of every run; see :func:`perflab.trials_of`."""
    differing = _differing([run.record.parameters for run in runs])
    parts = [_rows(run, own) for run, own in zip(runs, differing, strict=True)]
    nothing = pd.DataFrame(columns=[*OF_RUN, *TRIAL.names])
    table = pd.concat(parts, ignore_index=True) if parts else nothing
    table.attrs["problems"] = [f"run {run.run_id}: {text}" for run in runs for text in run.problems]
    return table


def _rows(run: Run, parameters: dict[str, Any]) -> pd.DataFrame:
    """Return a run's trials; what holds for the whole run stands first in each row."""
    trials = run.trials()
    for name in KINDS_OF_REMARK:
        trials[name] = ["; ".join(each.text for each in remarks) for remarks in trials[name]]
    lists = [name for name in trials if trials[name].map(pd.api.types.is_list_like).any()]
    whole = pd.DataFrame([_of_run(run) | parameters] * len(trials), index=trials.index)
    return pd.concat([whole, trials.drop(columns=lists)], axis=1)


def _of_run(run: Run) -> dict[str, Any]:
    record = run.record
    values = (
        run.run_id,
        record.experiment,
        record.backend,
        record.state,
        pd.to_datetime(record.created_at, utc=True, errors="coerce"),
        str(record.code.get("commit") or ""),
        bool(record.code.get("dirty")),
        plain(record.environment.get("machine")),
        hashlib.sha256(question_of(record).encode()).hexdigest()[:ID_LENGTH],
    )
    return dict(zip(OF_RUN, values, strict=True))


def _differing(each: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parameters of each run that are not the same in all, as cells of a table."""
    names = dict.fromkeys(name for own in each for name in own)
    differing = [name for name in names if len({plain(own.get(name)) for own in each}) > 1]
    return [{f"parameter_{name}": _cell(own.get(name)) for name in differing} for own in each]


def _cell(value: Any) -> Any:
    """Return a parameter as a cell that can be grouped by: lists as text."""
    return plain(value) if isinstance(value, (list, dict)) else value
