"""Temporary folders of this process, and those that killed owners left behind.

Whoever makes one removes it; who is killed, or runs a load and forgets its record, cannot. Each
folder therefore names its owner, by process and start, and whoever makes the next one removes those
whose owner is gone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from perflab.host.processes import alive, identity

PREFIX = "perflab-"
OWNER = "owner"


def temporary_folder(kind: str, place: Path | None = None) -> Path:
    """Make a temporary folder of this process, and remove those of processes that have ended.

    Its name begins with ``perflab-<kind>-``; by default it lies where ``TMPDIR`` says.
    """
    place = place or Path(tempfile.gettempdir())
    remove_abandoned(place)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-", dir=place))
    (folder / OWNER).write_text(identity(os.getpid()))
    return folder


@contextlib.contextmanager
def temporary(kind: str, place: Path | None = None) -> Iterator[Path]:
    """Give a :func:`temporary_folder` while the block runs."""
    folder = temporary_folder(kind, place)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(place: Path | None = None) -> None:
    """Remove the folders whose owner has ended; what names no owner is left alone."""
    for folder in (place or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            # Of one that is just being made the owner may not stand there yet.
            owner = (folder / OWNER).read_text() if _is_own(folder) else ""
            if owner and alive(owner) is None:
                shutil.rmtree(folder)


def _is_own(folder: Path) -> bool:
    """Return whether a folder is this user's: of a link, or of another's, nothing is read."""
    facts = folder.lstat()
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()
