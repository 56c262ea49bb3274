"""Opening the files of a folder that may come from somebody else.

Only plain files are opened and only real folders are looked into: a link could lead anywhere, and
a pipe would wait for a writer for ever.
"""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

from perflab.errors import RecordingError


def open_plain(path: Path) -> BufferedReader:
    """Open a plain file to read; refuse a link, a folder, a pipe and a device."""
    # A link or a pipe that takes its place after the look is not followed, and not waited for.
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise RecordingError(f"{path}: is no plain file (a link, a folder, a pipe or a device)")
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, largest_bytes: int) -> bytes:
    """Return the content of a plain file; refuse one that is larger than ``largest_bytes``."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest_bytes:
            raise RecordingError(
                f"{path}: has {size:,} bytes, at most {largest_bytes:,} are allowed"
            )
        return file.read(largest_bytes)


def check_folder(path: Path) -> None:
    """Refuse what is no folder, a link to one included."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise RecordingError(f"{path}: is no folder, or a link to one")
