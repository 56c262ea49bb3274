"""Write files and folders whole, check who owns a folder, and keep temporary folders.

A killed process does not remove its temporary folders. So each folder names its owner, by process
and start, and the next process that makes one removes the folders of owners that have ended.
"""

from __future__ import annotations

import errno
import os
import pwd
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from perflab.errors import PerflabError, RecordingError, UnsafePlace
from perflab.host.processes import alive, identity

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
ELSEWHERE = "point PERFLAB_RUNS at another folder, and go on with --resume"


@contextmanager
def explained(
    path: Path, kept: str, elsewhere: str = ELSEWHERE, kind: type[PerflabError] = RecordingError
) -> Iterator[None]:
    """Turn an OSError of the block, which writes ``path``, into an error that says the way out.

    ``kept`` says what is still readable, ``elsewhere`` how to write to another place.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in _FULL
        way_out = "make room on that disk" if full else "check that the folder is writable"
        raise kind(
            f"{path}: cannot be written ({error.strerror or error}); {kept}. Way out: {way_out}, "
            f"or {elsewhere}"
        ) from error


def write_file(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    """Write a new file and flush it to the disk; FileExistsError where the file exists."""
    with path.open("xb") as file:
        fill(file)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Flush a folder's entries to the disk (a rename is durable only after this)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path``; readers see the old file or the new one."""
    with whole_file(path) as file:
        file.write(content)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file to fill; it replaces ``path`` when the block ends without an error."""
    temporary = path.with_name(f".tmp-{path.name}-{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def remove(path: Path) -> None:
    """Remove a file or folder if it exists; of a link, only the link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_broken_off(folder: Path, age_s: float = 0.0) -> None:
    """Remove what killed writers left in a folder, unless it was written within ``age_s``."""
    for path in folder.glob(".tmp-*"):
        # A file that cannot be removed does no harm.
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime >= age_s:
                remove(path)


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill; it becomes ``target`` when the block ends without error."""
    temporary = target.with_name(f".tmp-{target.name}")
    remove(temporary)
    temporary.mkdir()
    try:
        yield temporary
        sync_folder(temporary)
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(target.parent)


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
