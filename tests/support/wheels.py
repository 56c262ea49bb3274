"""Wheels made on the spot, so that installing needs no network."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path


def wheel(folder: Path, name: str, version: str) -> str:
    """Write a wheel of one module that knows its version; return the line that pins it."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        archive.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name}=={version} --hash=sha256:{digest}\n"


def only_from(folder: Path) -> dict[str, str]:
    """Return the variables with which packages come from a folder and from nowhere else."""
    return {"PIP_FIND_LINKS": str(folder), "UV_OFFLINE": "1"}
