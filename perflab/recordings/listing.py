"""Finding runs by id, prefix, path, or as the latest."""

from __future__ import annotations

import difflib
from pathlib import Path

from perflab.errors import RecordingError, RunNotFound
from perflab.recordings.reader import Run

SHOWN = 5


def list_runs(root: Path | str, problems: list[str] | None = None) -> list[Run]:
    """Return the readable runs under ``root``, oldest first.

    ``problems`` receives a sentence for every folder whose record cannot be read.
    """
    runs = []
    for path in _folders(Path(root)):
        try:
            runs.append(Run(path))
        except RecordingError as error:
            if problems is not None:
                problems.append(str(error))
    return sorted(runs, key=_age)


def open_run(reference: Path | str, root: Path | str) -> Run:
    """Open a run by its id, a unique prefix of it, its path, "latest" or "latest:<experiment>".

    The latest is the newest that finished.

    Raises
    ------
    RunNotFound
        No run, or more than one, answers to the reference; the message names the nearest.
    RecordingError
        The run is there and its record cannot be read.
    """
    root, text = Path(root), str(reference)
    if text == "latest" or text.startswith("latest:"):
        return _latest(root, text.partition(":")[2])
    is_folder = (Path(text) / "run.json").exists()
    if "/" in text and is_folder:
        return Run(Path(text))
    names = [path.name for path in _folders(root)]
    matching = [name for name in names if text and name.startswith(text)]
    if text in names or len(matching) == 1:
        return Run(root / (text if text in names else matching[0]))
    if matching:
        raise RunNotFound(f"'{text}' fits {len(matching)} runs: {_listed(matching)}")
    if is_folder and not text.startswith("."):
        return Run(Path(text))
    raise RunNotFound(f"no run '{text}' in {root}; {_nearest(text, names)}")


def _latest(root: Path, experiment: str) -> Run:
    runs = list_runs(root)
    chosen = [run for run in runs if not experiment or run.record.experiment == experiment]
    finished = [run for run in chosen if run.record.state == "finished"]
    if finished:
        return finished[-1]
    if chosen:
        whose = f"of '{experiment}' " if experiment else ""
        state = {"running": "is not finished", "interrupted": "was interrupted", "failed": "failed"}
        told = f"run {chosen[-1].run_id} {state[chosen[-1].record.state]}; name it to see it"
        raise RunNotFound(f"no run {whose}in {root} has finished; {told}")
    if not runs:
        raise RunNotFound(f"there is no run in {root}; 'perflab run' makes one")
    measured = sorted({run.record.experiment for run in runs})
    raise RunNotFound(f"no run of '{experiment}' in {root}; there are runs of {_listed(measured)}")


def _folders(root: Path) -> list[Path]:
    return sorted(path.parent for path in root.glob("[!.]*/run.json"))


def _age(run: Run) -> tuple[str, int, str]:
    """Ids hold seconds; the first session's clock decides between runs of one second."""
    sessions = run.record.sessions
    return run.record.created_at, sessions[0].realtime_ns if sessions else 0, run.run_id


def _nearest(text: str, names: list[str]) -> str:
    if not names:
        return "there are no runs; 'perflab run' makes one"
    nearest = difflib.get_close_matches(text, names, n=3, cutoff=0.3)
    if nearest:
        return f"did you mean {_listed(nearest)}?"
    return f"the latest are {_listed(names[-3:])}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
