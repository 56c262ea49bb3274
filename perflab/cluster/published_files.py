"""The files of a published folder, and the marker that lists them with their digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from perflab.errors import StoreError

# The last file of a published folder: what lies there without it was broken off.
MARKER = "published.json"


def files_of(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by their names in it, in order; no links, nothing unfinished."""
    return {
        str(path.relative_to(folder)): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and not path.name.startswith(".tmp-")
    }


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def marker(digests: Mapping[str, str]) -> bytes:
    """Return the marker of a folder whose files have these digests."""
    return json.dumps({"files": dict(digests)}, indent=1).encode()


def listed(content: bytes) -> dict[str, str]:
    """Return name and digest of each file that a marker lists; ValueError where it is none."""
    told = json.loads(content)
    found = told.get("files") if isinstance(told, dict) else None
    if not isinstance(found, dict):
        raise ValueError(f"{MARKER} lists no files")
    return {str(name): str(digest) for name, digest in found.items()}


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file that a marker lists.

    Raises
    ------
    StoreError
        It would lie elsewhere: whoever writes to a store can write a marker.
    """
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise StoreError(f"'{name}' is listed in a {MARKER} and lies outside of its folder")
    return folder.joinpath(*parts)
