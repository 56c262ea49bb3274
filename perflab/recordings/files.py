"""Checks the files of recordings against their manifests.

The manifest of a trial's folder has the sizes and digests of its files, so that a trial is known to
be whole before a table is decoded.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import BaseModel, Field, ValidationError

from perflab.errors import RecordingError

FILE = "manifest.json"
# Of larger files, such as a million messages, only the size is checked until they are needed;
# otherwise a look through many runs would read gigabytes.
READ_AT_ONCE_BYTES = 4 * 2**20


class File(BaseModel, frozen=True, extra="forbid", strict=True):
    """One file of a trial."""

    size_bytes: int = Field(ge=0)
    sha256: str


class Manifest(BaseModel, frozen=True, extra="forbid", strict=True):
    """All files of a trial by name, without the manifest itself."""

    files: dict[str, File]


def describe(folder: Path) -> bytes:
    """Return the manifest of the files in a folder."""
    files = {
        path.name: File(size_bytes=path.stat().st_size, sha256=sha256_of(path))
        for path in sorted(folder.iterdir())
    }
    return Manifest(files=files).model_dump_json(indent=1).encode() + b"\n"


def check_files(folder: Path) -> None:
    """Refuse a trial without a manifest, or with other files than the manifest lists."""
    try:
        files = Manifest.model_validate_json((folder / FILE).read_bytes()).files
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
    size = path.stat().st_size
    if size != file.size_bytes:
        raise RecordingError(f"{path.name}: has {size:,} bytes, {file.size_bytes:,} were committed")
    if size <= READ_AT_ONCE_BYTES and sha256_of(path) != file.sha256:
        raise RecordingError(f"{path.name}: is not what was committed (its digest differs)")


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
