"""Reads the files of recordings, which may come from another user, and checks their manifests.

Only plain files and real folders are opened: a link could lead anywhere, and a pipe would wait for
a writer for ever. The manifest of a trial's folder has the sizes and digests of its files, so that
a trial is known to be whole before a table is decoded.
"""

from __future__ import annotations

import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from perflab.errors import RecordingError


def open_plain(path: Path) -> BufferedReader:
    """Open a plain file to read; refuse a link, a folder, a pipe and a device."""
    # The flags guard against a link or a pipe that replaces the file after this check.
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise RecordingError(f"{path}: is no plain file, but a link, a folder, a pipe or a device")
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
    """Refuse a path that is no folder, or a link to one."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise RecordingError(f"{path}: is not a folder, or is a link to one")


FILE = "manifest.json"
LARGEST_BYTES = 64 * 1024
# Of larger files, such as a million messages, only the size is checked until they are needed;
# otherwise a look through many runs would read gigabytes.
READ_AT_ONCE_BYTES = 4 * 2**20


class _StrictModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class File(_StrictModel):
    """One file of a trial."""

    size_bytes: int = Field(ge=0)
    sha256: str


class Manifest(_StrictModel):
    """All files of a trial by name, without the manifest itself."""

    files: dict[str, File]


def describe(folder: Path) -> bytes:
    """Return the manifest of the files in a folder."""
    files = {
        path.name: File(size_bytes=path.stat().st_size, sha256=_digest(path))
        for path in sorted(folder.iterdir())
    }
    return Manifest(files=files).model_dump_json(indent=1).encode() + b"\n"


def check_files(folder: Path) -> None:
    """Refuse a trial without a manifest, or with other files than the manifest lists."""
    try:
        files = Manifest.model_validate_json(read_plain(folder / FILE, LARGEST_BYTES)).files
    except FileNotFoundError:
        raise RecordingError(f"{FILE}: missing") from None
    except ValidationError as error:
        raise RecordingError(f"{FILE}: is damaged: {error.errors()[0]['msg']}") from None
    there = {path.name for path in folder.iterdir()} - {FILE}
    if missing := sorted(set(files) - there):
        raise RecordingError(f"{', '.join(missing)}: missing")
    if foreign := sorted(there - set(files)):
        raise RecordingError(f"{', '.join(foreign)}: not of this trial")
    for name, file in files.items():
        _compare(folder / name, file)


def _compare(path: Path, file: File) -> None:
    with open_plain(path) as opened:
        size = os.fstat(opened.fileno()).st_size
    if size != file.size_bytes:
        raise RecordingError(f"{path.name}: has {size:,} bytes, {file.size_bytes:,} were committed")
    if size <= READ_AT_ONCE_BYTES and _digest(path) != file.sha256:
        raise RecordingError(f"{path.name}: is not what was committed (its digest differs)")


def _digest(path: Path) -> str:
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
