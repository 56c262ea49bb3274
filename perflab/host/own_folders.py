"""Folders that nobody else made and nobody else can change."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from perflab.errors import UnsafePlace
from perflab.host.strangers import user_name

OTHERS_WRITE = 0o022


def own_folder(path: Path, mode: int = 0o700) -> Path:
    """Make a folder, or take one of one's own; it has exactly ``mode``, whatever the umask.

    Raises
    ------
    UnsafePlace
        It is a link, another user's, or others can write in it or replace it; nothing was written.
    OSError
        It cannot be made.
    """
    for place in reversed(path.parents):
        _make(place, 0o755)
        _check_step(place, path)
    _make(path, mode)
    descriptor = _opened(path)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
    return path


def check_own(path: Path) -> None:
    """Raise what :func:`own_folder` would, and FileNotFoundError where there is nothing."""
    for place in reversed(path.parents):
        _check_step(place, path)
    os.close(_opened(path))


def _make(place: Path, mode: int) -> None:
    with contextlib.suppress(FileExistsError):
        place.mkdir(0o700)
        place.chmod(mode)


def _check_step(place: Path, path: Path) -> None:
    """Refuse a folder on the way in which others could replace what comes after it."""
    facts = place.lstat()
    on_the_way = f"{place}, on the way to {path},"
    if facts.st_uid not in (0, os.getuid()):
        raise _refusal(f"{on_the_way} belongs to {user_name(facts.st_uid)}", path)
    if stat.S_ISLNK(facts.st_mode):
        place.resolve(strict=True)  # raises for a link that leads round in a circle
        target = place.parent / place.readlink()
        for step in (*reversed(target.parents), target):
            _check_step(step, path)
    elif facts.st_mode & OTHERS_WRITE and not facts.st_mode & stat.S_ISVTX:
        shown = stat.S_IMODE(facts.st_mode)
        raise _refusal(f"{on_the_way} can be written by others (mode {shown:04o})", path)


def _opened(path: Path) -> int:
    """Return a descriptor of a folder of one's own."""
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
    # One's own entry in a folder where others replace nothing: it is still the one just seen.
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _refusal(problem: str, path: Path) -> UnsafePlace:
    return UnsafePlace(
        f"{problem}; what is in it may be somebody else's, so the lab neither uses nor changes it. "
        f"Way out: remove {path} after a look, or point PERFLAB_STATE at a folder of your own"
    )
