"""Folders of one's own: made for their user alone, and used only while they are."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from perflab.errors import UnsafePlace

OTHERS_WRITE = 0o022


def own_folder(path: Path, mode: int = 0o700) -> Path:
    """Make a folder, or take one of one's own; it has exactly ``mode``, whatever the umask.

    Raises UnsafePlace where it is a link, another user's, or others can write in it: nothing was
    written. Raises OSError where it cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(0o700, exist_ok=True)
    check_own(path)
    path.chmod(mode)
    return path


def check_own(path: Path) -> None:
    """Raise what :func:`own_folder` would, and FileNotFoundError where there is nothing."""
    facts = path.lstat()
    if stat.S_ISLNK(facts.st_mode):
        raise _refusal(f"{path} is a link, made by {user_name(facts.st_uid)}", path)
    if not stat.S_ISDIR(facts.st_mode):
        raise _refusal(f"{path} is not a folder", path)
    if facts.st_uid != os.getuid():
        raise _refusal(f"{path} belongs to {user_name(facts.st_uid)}", path)
    if facts.st_mode & OTHERS_WRITE:
        shown = stat.S_IMODE(facts.st_mode)
        raise _refusal(f"{path} can be written by others (mode {shown:04o})", path)


def user_name(uid: int) -> str:
    """Return how to call a user, who need not have an entry in the list of users."""
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _refusal(problem: str, path: Path) -> UnsafePlace:
    return UnsafePlace(
        f"{problem}; what is in it may be somebody else's, so the lab neither uses nor changes it. "
        f"Way out: remove {path} after a look, or point PERFLAB_STATE at a folder of your own"
    )
