"""Finding runs: all of them, or one by id, prefix, path or ``latest``."""

from __future__ import annotations

import difflib
from pathlib import Path

from perflab.errors import RecordingError, RunNotFound
from perflab.paths import runs_dir
from perflab.recordings.reader import Run
from perflab.recordings.schema import RUN_FILE


def list_runs(root: Path | None = None) -> list[Run]:
    """Return all readable runs, oldest first."""
    root = root or runs_dir()
    runs = []
    for file in sorted(root.glob(f"*/{RUN_FILE}")):
        try:
            runs.append(Run(file.parent))
        except RecordingError:
            continue
    return runs


def open_run(reference: str | Path, root: Path | None = None) -> Run:
    """Return a run by path, id, unique prefix, ``latest`` or ``latest:<experiment>``.

    Raises
    ------
    RunNotFound
        None or several answer; the message lists the nearest.
    """
    path = Path(reference)
    if (path / RUN_FILE).exists():
        return Run(path)
    text = str(reference)
    runs = list_runs(root)
    word, _, experiment = text.partition(":")
    if word == "latest":
        found = [run for run in runs if experiment in ("", run.record.experiment)]
        found = found[-1:]
    else:
        found = [run for run in runs if run.run_id.startswith(text)]
    if len(found) == 1:
        return found[0]
    ids = [run.run_id for run in runs]
    if found:
        raise RunNotFound(f"'{text}' fits several runs: {', '.join(run.run_id for run in found)}")
    nearest = difflib.get_close_matches(text, ids, n=3, cutoff=0.3)
    listed = ", ".join(nearest or ids[-3:]) or "there are none yet"
    raise RunNotFound(f"no run '{text}'; nearest: {listed} (see 'perflab runs')")
