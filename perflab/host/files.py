"""Writes files and folders whole, or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from perflab.errors import PerflabError, RecordingError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
ANEW = "point PERFLAB_RUNS at another folder"
ELSEWHERE = (
    "move the run to another disk and point PERFLAB_RUNS at the folder that it is in; then go on "
    "with --resume"
)


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
