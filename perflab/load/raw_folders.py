"""Temporary folders of raw rows, and those that killed owners left behind.

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
from pathlib import Path

from perflab.host.processes import alive, identity

PREFIX = "perflab-load-"
OWNER = "owner"


def raw_folder() -> Path:
    """Make a temporary folder of this process, and remove those of processes that have ended.

    It lies where ``TMPDIR`` says. See :func:`keep` for one that is to outlive this process.

    Raises
    ------
    OSError
        It cannot be made.
    """
    remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    (folder / OWNER).write_text(identity(os.getpid()))
    return folder


def keep(folder: Path) -> None:
    """Let a folder outlive its owner: a user has been told of it."""
    (folder / OWNER).unlink(missing_ok=True)


def remove_abandoned() -> None:
    """Remove the folders whose owner has ended; what names no owner is left alone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            # Of one that is just being made the owner may not stand there yet.
            owner = (folder / OWNER).read_text() if _is_own(folder) else ""
            if owner and alive(owner) is None:
                shutil.rmtree(folder)


def _is_own(folder: Path) -> bool:
    """Return whether a folder is this user's: of a link, or of another's, nothing is read."""
    facts = folder.lstat()
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()
