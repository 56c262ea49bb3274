"""Folders that are made once per content, and kept while they are used.

Environments, artifacts and copies are such; they are named by what they are made from.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from perflab.host.processes import alive, identity

KEPT_UNUSED_S = 30 * 24 * 3600.0
MAKING = ".making-"


def made(target: Path, make: Callable[[Path], None]) -> Path:
    """Return a folder that ``make`` has filled, now or at an earlier call.

    It is filled under another name and renamed when it is whole: a crash in between leaves nothing
    half. Of two that make it side by side, the second takes what the first has made.
    """
    if not target.exists():
        making = target.with_name(f"{target.name}{MAKING}{identity(os.getpid()).replace('/', '+')}")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(0o700)
        try:
            make(making)
            _take_place(making, target)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    os.utime(target)
    return target


def _take_place(making: Path, target: Path) -> None:
    try:
        making.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def drop_unused(root: Path) -> None:
    """Remove what nobody has used for 30 days, and what dead makers left half made."""
    for folder in root.iterdir():
        if _is_forsaken(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_forsaken(folder: Path) -> bool:
    _, sign, maker = folder.name.partition(MAKING)
    if sign:
        return alive(maker.replace("+", "/")) is None
    try:
        return time.time() - folder.stat().st_mtime > KEPT_UNUSED_S
    except FileNotFoundError:
        return False


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
