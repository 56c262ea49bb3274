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
    """Open a plain file to read; wait for nothing and follow no link.

    Raises
    ------
    RecordingError
        It is a link, a folder, a pipe or a device.
    OSError
        It is missing, or may not be read.
    """
    refused = RecordingError(f"{path}: is no plain file (a link, a folder, a pipe or a device)")
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise refused
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    # It may have been replaced since it was looked at.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise refused
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, largest_bytes: int) -> bytes:
    """Return the content of a plain file of at most ``largest_bytes``.

    Raises
    ------
    RecordingError
        It is larger, or no plain file.
    OSError
        It is missing, or cannot be read.
    """
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest_bytes:
            raise RecordingError(
                f"{path}: has {size:,} bytes, at most {largest_bytes:,} are allowed"
            )
        return file.read(largest_bytes)


def check_folder(path: Path) -> None:
    """Refuse what is no folder, a link to one included.

    Raises
    ------
    RecordingError
        It is something else.
    OSError
        It is missing, or cannot be looked at.
    """
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise RecordingError(f"{path}: is no folder, or a link to one")
