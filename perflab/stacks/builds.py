"""Folders that are made once per content.

Programs, environments, artifacts and copies lie in folders whose names hold a hash of what they are
made from.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

KEPT_UNUSED_S = 30 * 24 * 3600.0
MARK = ".made"


def made(
    target: Path,
    make: Callable[[Path], None],
    values: str = "",
    copy: Callable[[Path, Path], None] | None = None,
) -> Path:
    """Return the folder ``target``, which ``make`` fills unless it is there and whole.

    It is filled in its final place, because programs write down where they were installed. A mark
    beside it says that it is whole, and is locked meanwhile: a second process waits, and what one
    left that failed or died is made anew, as is what was made with other ``values``, of which the
    mark has a digest. Folders that nobody has used for 30 days are removed.

    ``copy`` copies what was made to a second folder (:func:`copy_of`). Then the next call undoes
    whatever was changed in ``target`` since. OSError where that cannot be.
    """
    mark = target.with_name(f".{target.name}{MARK}")
    digest = f" {hashlib.sha256(values.encode()).hexdigest()}" if values else ""
    whole = f"whole{digest}\n"
    with _locked(mark) as file:
        is_whole = file.read() == whole and target.is_dir()
        if not is_whole or (copy and not copy_of(target).is_dir()):
            file.truncate(0)
            _drop_unused(target.parent)
            _remove(target)
            target.mkdir(0o700)
            try:
                make(target)
                if copy:
                    copy_of(target).mkdir(0o700)
                    copy(target, copy_of(target))
            except BaseException:
                _drop(target, mark)
                raise
            file.write(whole)
        elif copy:
            _restore(target, copy_of(target))
        os.utime(mark)
    return target


def copy_of(target: Path) -> Path:
    """Return the folder that keeps what was made in ``target`` as it was then."""
    return target.with_name(f".{target.name}.copy")


@contextlib.contextmanager
def _locked(mark: Path, waiting: int = 0) -> Iterator[IO[str]]:
    """Open a mark that is locked until the block ends; BlockingIOError with LOCK_NB."""
    while True:
        with mark.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | waiting)
            # Whoever had it before may have removed it.
            if mark.exists() and os.path.samestat(os.fstat(file.fileno()), mark.stat()):
                file.seek(0)
                yield file
                return


def _drop(target: Path, mark: Path) -> None:
    _remove(target)
    mark.unlink()


def _remove(target: Path) -> None:
    for folder in (target, copy_of(target)):
        shutil.rmtree(folder, ignore_errors=True)


def _restore(folder: Path, copy: Path) -> None:
    """Bring a folder back to its copy; what shows no change is neither read nor written."""
    found, wanted = _entries(folder), _entries(copy)
    for name, facts in found.items():
        if facts == wanted.get(name):
            continue
        if stat.S_ISDIR(facts[0]):
            shutil.rmtree(folder / name)
        else:
            (folder / name).unlink()
    for name, facts in wanted.items():
        if stat.S_ISDIR(facts[0]):
            (folder / name).mkdir(exist_ok=True)
            _restore(folder / name, copy / name)
        # A socket or a pipe is made by the program that needs it.
        elif facts != found.get(name) and (stat.S_ISREG(facts[0]) or stat.S_ISLNK(facts[0])):
            shutil.copy2(copy / name, folder / name, follow_symlinks=False)
    ours, kept = folder.stat(), copy.stat()
    if (ours.st_mode, ours.st_mtime_ns) != (kept.st_mode, kept.st_mtime_ns):
        shutil.copystat(copy, folder)


def _entries(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return mode, size in bytes and time of change in ns by name; of folders only their type."""
    entries = {}
    with os.scandir(folder) as found:
        for entry in found:
            facts = entry.stat(follow_symlinks=False)
            is_folder = stat.S_ISDIR(facts.st_mode)
            seen = (facts.st_mode, facts.st_size, facts.st_mtime_ns)
            entries[entry.name] = (stat.S_IFDIR, 0, 0) if is_folder else seen
    return entries


def _drop_unused(root: Path) -> None:
    for mark in root.glob(f".*{MARK}"):
        with contextlib.suppress(FileNotFoundError, BlockingIOError):
            is_old = time.time() - mark.stat().st_mtime > KEPT_UNUSED_S
            if is_old or not mark.stat().st_size:
                with _locked(mark, fcntl.LOCK_NB):
                    _drop(root / mark.name[1 : -len(MARK)], mark)


def content_hash(*folders: Path) -> str:
    """Return a short hash over the files of folders: paths, links, contents, what can be run."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in files_of(folder):
            name, mode = path.relative_to(folder), path.lstat().st_mode & 0o111
            link = path.readlink() if path.is_symlink() else ""
            digest.update(os.fsencode(f"{name}\0{mode:o}\0{link}\0"))
            digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()[:12]


def files_of(folder: Path) -> list[Path]:
    """Return files, links and empty folders below a folder, sorted, as ``docker build`` sends them.

    Those that Python has compiled are left out. What ``.dockerignore`` leaves out of an image is no
    part of a service, either.
    """
    paths = [path for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts]
    if (listed := folder / ".dockerignore").is_file():
        from docker.utils.build import exclude_paths

        lines = map(str.strip, listed.read_text(encoding="utf-8").splitlines())
        rules = [line for line in lines if line and not line.startswith("#")]
        kept = exclude_paths(str(folder), rules)
        paths = [path for path in paths if str(path.relative_to(folder)) in kept]
    paths = [path for path in paths if path.is_symlink() or path.is_file() or path.is_dir()]
    filled = {path.parent for path in paths}
    return [path for path in paths if path not in filled]


def plain(versions: Mapping[str, str]) -> dict[str, str]:
    """Return versions by normalized name: all spellings of a name give the same one.

    Source: Python Packaging User Guide, Names and normalization.
    """
    return {re.sub(r"[-_.]+", "-", name).lower(): versions[name] for name in sorted(versions)}
