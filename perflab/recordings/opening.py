"""Opening the files of a folder that may come from somebody else.

Only plain files are opened and only real folders are looked into: a link could lead anywhere, a
FIFO would wait for a writer for ever, a device may never end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path

from perflab.errors import RecordingError

_KINDS = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_plain(path: Path) -> BufferedReader:
    """Open a plain file to read; wait for nothing and follow no link.

    Raises
    ------
    RecordingError
        It is something else; the message names what.
    OSError
        It is missing, or may not be read.
    """
    _refuse_all_but(stat.S_ISREG, path, os.lstat(path).st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # It may have been replaced since it was looked at.
        _refuse_all_but(stat.S_ISREG, path, os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


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
        Names what it is.
    OSError
        It is missing, or cannot be looked at.
    """
    _refuse_all_but(stat.S_ISDIR, path, os.lstat(path).st_mode)


def _refuse_all_but(is_wanted: Callable[[int], bool], path: Path, mode: int) -> None:
    if is_wanted(mode):
        return
    found = next((name for is_kind, name in _KINDS if is_kind(mode)), "no plain file")
    wanted = "a folder" if is_wanted is stat.S_ISDIR else "a plain file"
    raise RecordingError(f"{path}: is {found}, it must be {wanted}")
