"""Temporary folders that know their owner.

A killed process does not remove its temporary folders. So each folder names its owner, by process
and start, and the next process that makes one removes the folders of owners that have ended.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perflab.host.processes import alive, identity

PREFIX = "perflab-"
OWNER = "owner"


def temporary_folder(kind: str, place: Path | None = None) -> Path:
    """Make ``perflab-<kind>-...`` of this process, and remove those of processes that have ended.

    By default it lies in ``TMPDIR``.
    """
    place = place or Path(tempfile.gettempdir())
    remove_abandoned(place)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-", dir=place))
    (folder / OWNER).write_text(identity(os.getpid()))
    return folder


@contextmanager
def temporary(kind: str, place: Path | None = None) -> Iterator[Path]:
    """Yield a :func:`temporary_folder`, and remove it after the block."""
    folder = temporary_folder(kind, place)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(place: Path | None = None) -> None:
    """Remove temporary folders whose owner has ended; those without an owner file stay."""
    for folder in (place or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        with suppress(OSError):
            # A folder that is just being made may have no owner file yet.
            owner = (folder / OWNER).read_text() if is_own(folder) else ""
            if owner and alive(owner) is None:
                shutil.rmtree(folder)


def is_own(folder: Path) -> bool:
    """Return whether a folder is there, this user's and no link."""
    try:
        facts = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()
