"""Folders that are made once per content.

Programs, environments, artifacts and copies lie in folders whose names hold a hash of what they are
made from.
"""

from __future__ import annotations

import contextlib
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
    """Return the folder ``target``, which ``make`` fills unless it exists.

    ``make`` fills a folder of another name, which is renamed when it is whole. Where two processes
    make it at once, the second takes the folder of the first. Folders beside it that nobody has
    used for 30 days are removed, and incomplete ones of dead processes.
    """
    if not target.exists():
        making = target.with_name(f"{target.name}{MAKING}{identity(os.getpid()).replace('/', '+')}")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(0o700)
        _drop_unused(target.parent)
        try:
            make(making)
            making.rename(target)
        except OSError:
            # Another process may have made it meanwhile.
            if not target.is_dir():
                raise
        finally:
            shutil.rmtree(making, ignore_errors=True)
    os.utime(target)
    return target


def _drop_unused(root: Path) -> None:
    for folder in root.iterdir():
        _, is_incomplete, maker = folder.name.partition(MAKING)
        with contextlib.suppress(FileNotFoundError):
            is_old = time.time() - folder.stat().st_mtime > KEPT_UNUSED_S
            if alive(maker.replace("+", "/")) is None if is_incomplete else is_old:
                shutil.rmtree(folder, ignore_errors=True)


def content_hash(*folders: Path) -> str:
    """Return a short hash over the files of folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in files_of(folder):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def files_of(folder: Path) -> list[Path]:
    """Return the files below a folder, sorted, without those that Python has compiled.

    What ``.dockerignore`` leaves out of an image is no part of a service, either.
    """
    paths = (path for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts)
    if (listed := folder / ".dockerignore").is_file():
        from docker.utils.build import exclude_paths

        lines = map(str.strip, listed.read_text(encoding="utf-8").splitlines())
        rules = [line for line in lines if line and not line.startswith("#")]
        kept = exclude_paths(str(folder), rules)
        paths = (path for path in paths if str(path.relative_to(folder)) in kept)
    return [path for path in paths if path.is_file()]


def plain(versions: Mapping[str, str]) -> dict[str, str]:
    """Return versions by normalized name: all spellings of a name give the same one.

    Source: Python Packaging User Guide, Names and normalization.
    """
    return {re.sub(r"[-_.]+", "-", name).lower(): versions[name] for name in sorted(versions)}
