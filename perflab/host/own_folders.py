"""Folders of the user alone: nobody else may write into them."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from perflab.errors import UnsafePlace

OTHERS_WRITE = 0o022


def own_folder(path: Path, mode: int = 0o700) -> Path:
    """Make a folder unless this user has it; give it exactly ``mode``, whatever the umask.

    Raises UnsafePlace, before anything is written, where it is a link, belongs to another user, or
    others can write in it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(0o700, exist_ok=True)
    check_own(path)
    path.chmod(mode)
    return path


def check_own(path: Path) -> None:
    """Raise UnsafePlace as :func:`own_folder` does, and FileNotFoundError without a folder."""
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
    """Return the words for a user, who need not have an entry in the list of users."""
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def _refusal(problem: str, path: Path) -> UnsafePlace:
    return UnsafePlace(
        f"{problem}; another user may have written in it, so the lab does not use it. Way out: "
        f"look at {path} and remove it, or set PERFLAB_STATE to a folder of your own"
    )
