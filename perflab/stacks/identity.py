"""The identity of what is made from a folder: images, artifacts and copies are cached by it."""

from __future__ import annotations

import hashlib
from pathlib import Path


def content_hash(folder: Path) -> str:
    """Return a short hash over a folder's files; the identity of what is made from it."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
