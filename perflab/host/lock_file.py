"""The file that is locked: opened so that no stranger can lead the lab elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from perflab.errors import UnsafePlace
from perflab.host.strangers import user_name

# A link is not followed, a FIFO does not block, and no child keeps the lock.
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_lock(path: Path) -> int:
    """Open the lock file for reading, which is enough to lock it; make it when there is none.

    Raises
    ------
    UnsafePlace
        What lies there cannot be the lock; the message says what it is and whose.
    """
    while True:
        try:
            return open_existing(path)
        except FileNotFoundError:
            pass
        try:
            made = os.open(path, FLAGS | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            continue
        except OSError as error:
            raise _refusal(path, f"cannot be made ({error.strerror})") from None
        # Every user may lock it, whatever the umask of the first; nobody else may write in it.
        os.fchmod(made, 0o644)
        return made


def is_still(path: Path, descriptor: int) -> bool:
    """Tell whether an open lock file is the one that lies there (it may have been deleted)."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False


def is_own(descriptor: int) -> bool:
    """Tell whether writing in the file can harm nobody."""
    return os.fstat(descriptor).st_uid == os.getuid()


def open_existing(path: Path) -> int:
    """Open the lock file if there is one; raise FileNotFoundError or UnsafePlace otherwise."""
    try:
        problem = _problem(path.lstat())
        if not problem:
            descriptor = os.open(path, FLAGS)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _refusal(path, f"cannot be opened ({error.strerror})") from None
    if problem:
        raise _refusal(path, problem)
    problem = _problem(os.fstat(descriptor))
    if problem:
        os.close(descriptor)
        raise _refusal(path, problem)
    return descriptor


def _problem(facts: os.stat_result) -> str:
    kind = stat.S_IFMT(facts.st_mode)
    if kind != stat.S_IFREG:
        return f"is {KINDS.get(kind, 'no file')}, made by {user_name(facts.st_uid)}"
    if facts.st_nlink > 1:
        # Locking, or writing in, another file under this name would harm whoever uses that one.
        return f"is another file too (a hard link), of {user_name(facts.st_uid)}"
    return ""


def _refusal(path: Path, problem: str) -> UnsafePlace:
    return UnsafePlace(
        f"the host's lock {path} {problem}, so nothing was started. Way out: remove it after a "
        "look, or set PERFLAB_LOCK to a file that all who measure on this host can read"
    )
