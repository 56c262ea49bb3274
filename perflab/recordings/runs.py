"""The trials of several runs as one tidy table, for pandas."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from perflab import credentials
from perflab.errors import RecordingError, RunNotFound
from perflab.parameters import as_text, did_you_mean
from perflab.recordings.display import plain
from perflab.recordings.reference import (
    is_main,
    reference_ids,
    reference_run,
    reference_runs,
)
from perflab.recordings.run import Run
from perflab.recordings.schema import RunRecord
from perflab.recordings.tables import KINDS_OF_REMARK, TRIAL
from perflab.statistics.in_words import first_of

MOST_NAMES = 5
REFERENCE = "reference"
# Runs that differ in these parameters only asked the same question.
FREE_PARAMETERS = ("blocks", "least_blocks", "most_blocks", "seed", "backend", "why")
ID_LENGTH = 8


def list_runs(root: Path | str, problems: list[str] | None = None) -> list[Run]:
    """Return the readable runs under ``root``, oldest first.

    A sentence for every folder with an unreadable record is appended to ``problems``.
    """
    runs = []
    for path in _folders(Path(root)):
        try:
            runs.append(Run(path))
        except RecordingError as error:
            if problems is not None:
                problems.append(str(error))
    return sorted(runs, key=_age)


def newest_runs(experiment: str, root: Path) -> Iterator[Run]:
    """Yield the readable runs of an experiment ("*": of any) under ``root``, the newest first.

    Ids begin with the time and name the experiment, so that no record of another one is opened. A
    run in a folder of another name is left out.
    """
    for path in sorted(root.glob(f"[!.]*-{experiment}-*"), reverse=True):
        try:
            run = Run(path)
        except RecordingError:
            continue
        yield run


def open_run(reference: Path | str, root: Path | str, *, unfinished: bool = False) -> Run:
    """Open a run by its id, its beginning or last part, its path, or a word for it.

    "latest" and "latest:<experiment>" are the newest finished run, or with ``unfinished`` the
    newest that is not finished; "reference:<experiment>" is the run that ships with the lab. Ids
    are those of runs under ``root`` and of the reference.

    RunNotFound where no run, or more than one, fits the reference; the message names the nearest.
    RecordingError where the record of the run cannot be read.
    """
    root, text = Path(root), str(reference)
    if text == "latest" or text.startswith("latest:"):
        return _latest(root, text.partition(":")[2], unfinished)
    if text.startswith(f"{REFERENCE}:"):
        return _shipped(text.partition(":")[2])
    if text and (Path(text) / "run.json").exists():
        return Run(Path(text).absolute())
    own = [path.name for path in _folders(root)]
    shipped = _meant(text, reference_ids())
    matching = _meant(text, own) or shipped
    if text in matching or len(matching) == 1:
        name = text if text in matching else matching[0]
        return Run(root / name) if name in own else reference_run(name)
    if matching:
        raise RunNotFound(f"'{text}' fits {len(matching)} runs: {first_of(matching, MOST_NAMES)}")
    hint = did_you_mean(text, own)
    raise RunNotFound(f"no run '{text}' in {root}{hint}; 'perflab runs' lists all")


def _meant(text: str, names: Iterable[str]) -> list[str]:
    """Return the names that begin with a text, or whose last part it is."""
    return [name for name in names if text and (name.startswith(text) or name.endswith(f"-{text}"))]


def _latest(root: Path, experiment: str, unfinished: bool) -> Run:
    known = [run for run in list_runs(root) if (run.record.state != "finished") == unfinished]
    chosen = [run for run in known if experiment in ("", run.record.experiment)]
    if not chosen:
        measured = first_of(sorted({run.record.experiment for run in known}), MOST_NAMES) or "none"
        subject = f" of '{experiment}'" if experiment else ""
        what = "is unfinished (unfinished" if unfinished else "has finished (finished"
        raise RunNotFound(
            f"no run{subject} in {root} {what} ones: {measured}); 'perflab runs' lists all, and "
            "'perflab run' makes one"
        )
    return chosen[-1]


def _shipped(experiment: str) -> Run:
    """Return the run of the reference on an experiment: with the defaults, or else the oldest."""
    runs = reference_runs()
    chosen = [run for run in runs if run.record.experiment == experiment]
    if not chosen:
        known = sorted({run.record.experiment for run in runs})
        raise RunNotFound(
            f"the reference has no run of '{experiment}'{did_you_mean(experiment, known)}; it has "
            f"{', '.join(known) or 'no runs'}"
        )
    return next(filter(is_main, chosen), chosen[0])


def _folders(root: Path) -> list[Path]:
    return sorted(path.parent for path in root.glob("[!.]*/run.json"))


def _age(run: Run) -> tuple[str, int, str]:
    """Return the sort key of a run; ids hold only seconds, so the first session's clock helps."""
    sessions = run.record.sessions
    return run.record.created_at, sessions[0].realtime_ns if sessions else 0, run.run_id


def complete_blocks(run: Run) -> int:
    """Return the number of blocks in which every treatment has a valid trial."""
    per_block = run.valid_trials().groupby("block")["treatment"].nunique()
    return int((per_block == len(run.record.treatments)).sum())


def select(runs: Iterable[Run]) -> list[Run]:
    """Return one run of those that asked the same question, sorted by experiment and backend.

    The question is experiment, backend, machine, treatments and parameters, without blocks and
    seed. The run with the most complete blocks is chosen, the newest of several. Unfinished runs
    are left out. Runs are never pooled: trials of two runs share no block, so a drift between them
    would count as an effect. ``runs`` come oldest first.
    """
    by_question: dict[str, list[Run]] = {}
    for run in runs:
        if run.record.state == "finished":
            by_question.setdefault(question_of(run.record), []).append(run)
    chosen = [_best(group) for group in by_question.values()]
    return sorted(chosen, key=lambda run: (run.record.experiment, run.record.backend))


def _best(group: list[Run]) -> Run:
    """Return the choice among runs of one question, oldest first.

    Counting complete blocks reads all trials, so a run that cannot exceed the best is not read.
    """
    best, most = group[-1], complete_blocks(group[-1])
    for run in reversed(group[:-1]):
        if run.record.blocks > most and (blocks := complete_blocks(run)) > most:
            best, most = run, blocks
    return best


def question_of(record: RunRecord) -> str:
    """Return a text of a run's question; runs with equal texts are comparable.

    Other credentials, or other names of their references, make no other question.
    """
    # As text, in which 1 and "1" are one level.
    parameters = {
        name: as_text(value)
        for name, value in record.parameters.items()
        if name not in FREE_PARAMETERS
    }
    names = sorted(treatment.name for treatment in record.treatments)
    machine = record.environment.get("machine")
    text = json.dumps(
        [record.experiment, record.backend, machine, names, parameters], sort_keys=True
    )
    return credentials.REFERENCE.sub("{env:}", text)


def trials_of_runs(runs: Sequence[Run]) -> pd.DataFrame:
    """Return a row per committed trial of every run; see :func:`perflab.trials_of`."""
    differing = _differing([run.record.parameters for run in runs])
    parts = [_rows(run, parameters) for run, parameters in zip(runs, differing, strict=True)]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=TRIAL.names)
    table.attrs["problems"] = [f"run {run.run_id}: {text}" for run in runs for text in run.problems]
    return table


def _rows(run: Run, parameters: dict[str, Any]) -> pd.DataFrame:
    """Return a run's trials, with the columns about the run first."""
    trials = run.trials()
    for name in KINDS_OF_REMARK:
        trials[name] = ["; ".join(remark.text for remark in remarks) for remarks in trials[name]]
    lists = [name for name in trials if trials[name].map(pd.api.types.is_list_like).any()]
    whole = pd.DataFrame([_run_columns(run) | parameters] * len(trials), index=trials.index)
    return pd.concat([whole, trials.drop(columns=lists)], axis=1)


def _run_columns(run: Run) -> dict[str, Any]:
    record = run.record
    return {
        "run": run.run_id,
        "experiment": record.experiment,
        "backend": record.backend,
        "run_state": record.state,
        "created_at": pd.to_datetime(record.created_at, utc=True, errors="coerce"),
        "commit": str(record.code.get("commit") or ""),
        "dirty": bool(record.code.get("dirty")),
        "machine": plain(record.environment.get("machine")),
        "question_id": hashlib.sha256(question_of(record).encode()).hexdigest()[:ID_LENGTH],
    }


def _differing(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each run, the parameters that differ between runs, as cells of a table."""
    names = dict.fromkeys(name for values in runs for name in values)
    differing = [name for name in names if len({plain(run.get(name)) for run in runs}) > 1]
    return [{f"parameter_{name}": _cell(run.get(name)) for name in differing} for run in runs]


def _cell(value: Any) -> Any:
    """Return a parameter as a cell for grouping: lists as text."""
    return plain(value) if isinstance(value, (list, dict)) else value
