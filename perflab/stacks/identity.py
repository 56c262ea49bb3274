"""The identity of a service: of what is made from its folder, and of what is installed for it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path


def content_hash(*folders: Path) -> str:
    """Return a short hash over the files of folders; the identity of what is made from them."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in files_of(folder):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def files_of(folder: Path) -> list[Path]:
    """Return the files below a folder, sorted, without those that Python compiled."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def plain(versions: Mapping[str, str]) -> dict[str, str]:
    """Return versions by name, each name as all spellings of it have it in common.

    Source: Python Packaging User Guide, Names and normalization.
    """
    return {re.sub(r"[-_.]+", "-", name).lower(): versions[name] for name in sorted(versions)}
