"""Where a run keeps what was measured to explain it: a run of its own for each part."""

from __future__ import annotations

from pathlib import Path

from perflab.recordings.run import Run

FOLDER = "why"
# One request at a time; the load of the run; one at a time beside a profiler.
ALONE, LOADED, PROFILED = "alone", "loaded", "profiled"
# Stands before the name of a package whose samples have no function of the service's own code.
MODULE = "module "


def folder_of(run: Path, part: str) -> Path:
    """Return the folder of a part."""
    return run / FOLDER / part


def is_measured(folder: Path) -> bool:
    """Return whether the part in a folder was measured to its end."""
    return (folder / "run.json").exists() and Run(folder).record.state == "finished"


def is_explained(run: Run) -> bool:
    """Return whether all parts were measured; this one comes last."""
    return is_measured(folder_of(run.path, PROFILED))


def part_of(run: Run, part: str) -> Run | None:
    """Return a part of a run; None where it was not measured."""
    folder = folder_of(run.path, part)
    return Run(folder) if (folder / "run.json").exists() else None
