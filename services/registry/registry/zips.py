"""Zip files of an exact length, byte for byte the same wherever they are made."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

# The first that a zip file can hold: an entry's date is no part of what it is.
DATE = (1980, 1, 1, 0, 0, 0)
WEIGHTS = "model.safetensors"


def small(model_id: str) -> bytes:
    """Return a zip of the essential files of a model: its configuration and its description."""
    return _packed(_essential(model_id))


def of_size(model_id: str, size_bytes: int) -> bytes:
    """Return a valid zip of exactly that length, filled with weights that cannot be compressed.

    A ValueError says that the length is too short for the essential files.
    """
    files = _essential(model_id)
    least = len(_packed({**files, WEIGHTS: b""}))
    if size_bytes < least:
        raise ValueError(f"size = {size_bytes} is less than {least}, a zip without weights")
    seed = f"weights of {model_id}".encode()
    return _packed({**files, WEIGHTS: hashlib.shake_256(seed).digest(size_bytes - least)})


def _essential(model_id: str) -> dict[str, bytes]:
    config = {"model": model_id, "architecture": "none: this is a stand-in", "hidden_size": 192}
    return {
        "config.json": json.dumps(config, indent=2).encode(),
        "README.md": f"# {model_id}\n\nA stand-in with files of the right names.\n".encode(),
    }


def _packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()
