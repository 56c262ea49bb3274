"""Where the record of a load goes: looked at before anything is sent, and never lost after it.

Temporary folders go with their owner, unless a user has been told of them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perflab.errors import LoadError, ParameterError
from perflab.host.temporary_folders import OWNER, temporary_folder
from perflab.load.schedule import planned_count
from perflab.load.workload import Workload

LEAST_FREE_BYTES = 64 * 1024 * 1024
# The raw row, its phases, and the same again as Parquet.
BYTES_PER_REQUEST = 250


def raw_folder() -> Path:
    """Make a temporary folder of this process, and remove those of processes that have ended.

    It lies where ``TMPDIR`` says.
    """
    return temporary_folder("load")


@dataclass
class Place:
    """A folder for a record; ``keep`` is set where it must outlive the load."""

    folder: Path
    keep: bool = False

    @property
    def raw(self) -> Path:
        """Return where workers write."""
        return self.folder / "raw"

    def has_rows(self) -> bool:
        """Return whether a worker has written anything."""
        return any(file.stat().st_size for file in self.raw.glob("*/requests.rows"))


def folder_problems(option: str, folder: Path) -> list[str]:
    """Return why a new folder cannot be made; nothing is made yet."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        return [f"{option} {folder} exists; name a new folder, nothing is overwritten"]
    above = next(each for each in (folder, *folder.parents) if each.exists())
    if not above.is_dir():
        return [f"{option} {folder}: {above} is no folder; name another place"]
    if not os.access(above, os.W_OK | os.X_OK):
        return [f"{option} {folder}: {above} cannot be written to; name another place"]
    return []


def check_space(folder: Path, workload: Workload) -> None:
    """Refuse a disk that the record would fill, by a ParameterError."""
    needed = LEAST_FREE_BYTES + BYTES_PER_REQUEST * max(0, planned_count(workload.arrivals))
    free = shutil.disk_usage(folder).free
    if free < needed:
        text = f"{folder} has {free >> 20} MiB free, the record may need {needed >> 20}"
        way_out = "make room, name another disk with --out, or set TMPDIR where there is no --out"
        raise ParameterError("perflab load", [f"{text}: {way_out}"])


@contextlib.contextmanager
def place(folder: Path | None, workload: Workload) -> Iterator[Place]:
    """Yield where raw rows go: the result's own folder, or a temporary one that is removed.

    A folder in which nothing was recorded is removed again.

    Raises
    ------
    ParameterError, LoadError
        The place cannot be written, or is too small; nothing was sent.
    """
    made: list[Path] = []
    try:
        if folder is None:
            own = raw_folder()
            made = [own]
        else:
            own = folder.resolve()
            made = [each for each in (own, *own.parents) if not each.exists()]
            own.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=own).close()
    except OSError as error:
        raise LoadError(f"cannot write {error.filename}: {error.strerror}") from None
    here = Place(own)
    try:
        check_space(own, workload)
        yield here
    finally:
        if folder is None and here.keep:
            # A user has been told of it.
            (own / OWNER).unlink(missing_ok=True)
        elif folder is None:
            shutil.rmtree(own, ignore_errors=True)
        with contextlib.suppress(OSError):
            for each in made:
                each.rmdir()
