"""The folder of a sweep: its journal, its lock, its file as it was, and what cells left."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perflab.durable import remove_broken_off, whole_folder, write_file
from perflab.errors import HostBusy, ParameterError, ResumeRefused
from perflab.host import facts
from perflab.host.fingerprint import LENGTH, sources
from perflab.paths import notebook_file, sweeps_dir
from perflab.recordings.differing import differences
from perflab.sweeps.cells import Cell, Sweep, systems_of
from perflab.sweeps.journal import Journal, SessionBegun, unfinished

COPY = "sweep.yaml"
LOCK = "lock"
LOOK_S = 0.2
# Whoever makes a sweep's folder is done with it in milliseconds.
LATELY_S = 60.0


def folders(sweep: Sweep) -> list[Path]:
    """Return the folders of a sweep file's earlier sweeps, oldest first."""
    found = sweeps_dir().glob(f"*/{COPY}")
    return sorted(path.parent for path in found if _name_of(path.parent) == sweep.name)


def _name_of(folder: Path) -> str:
    return folder.name.partition("-")[2].rpartition("-")[0]


def new_folder(sweep: Sweep, anew: bool) -> Path:
    """Make the folder of a new sweep: ``<UTC time>-<name of the file>-<id>``.

    Raises
    ------
    ParameterError
        An earlier one has cells that never ended, and ``anew`` is not given.
    """
    for folder in [] if anew else folders(sweep)[-1:]:
        journal = Journal(folder)
        asked = journal.sessions[-1].cells if journal.sessions else ()
        left = unfinished(journal, asked)
        if left:
            raise ParameterError(
                f"sweep '{sweep.name}'",
                [
                    f"{folder} has {len(left)} of {len(asked)} cells that never ended: finish it "
                    "with --resume, or leave it and begin anew with --new"
                ],
            )
    began = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    folder = sweeps_dir() / f"{began}-{sweep.name}-{secrets.token_hex(3)}"
    sweeps_dir().mkdir(parents=True, exist_ok=True)
    remove_broken_off(sweeps_dir(), age_s=LATELY_S)
    with whole_folder(folder) as half:
        write_file(half / COPY, lambda file: file.write(sweep.content))
    return folder


def newest_folder(sweep: Sweep) -> Path:
    """Return the folder to go on with."""
    found = folders(sweep)
    if not found:
        raise ParameterError(
            "--resume", [f"there is no sweep '{sweep.name}' in {sweeps_dir()}; leave --resume out"]
        )
    return found[-1]


@contextlib.contextmanager
def held(folder: Path, wait_s: float) -> Iterator[None]:
    """Hold the folder's lock while the block runs; the kernel lets go of it with its holder.

    Raises
    ------
    HostBusy
        Another process goes on with this sweep.
    """
    deadline = time.monotonic() + wait_s
    descriptor = os.open(
        folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644
    )
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(descriptor, 40, 0).decode(errors="replace") or "unknown"
                    raise HostBusy(
                        f"sweep {folder} is being carried out already (process {holder}); wait for "
                        "it to end, or give --wait SECONDS"
                    ) from None
            time.sleep(LOOK_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        # Nobody else writes here now: what is half was left by one who was killed.
        for place in (folder, *folder.glob("cells/*")):
            remove_broken_off(place)
        yield
    finally:
        os.close(descriptor)


def session_now(sweep: Sweep, machine: Mapping[str, Any] | None = None) -> SessionBegun:
    """Return what a session that begins now measures: cells, code, notebooks and machine.

    ``machine`` is what it measures on, where that is not this host.
    """
    return SessionBegun(
        cells=tuple(cell.id for cell in sweep.cells),
        file_sha256=hashlib.sha256(sweep.content).hexdigest(),
        sources={**sources(systems_of(sweep.cells)), **digests_of_notebooks(sweep.cells)},
        machine=dict(facts.machine() if machine is None else machine),
    )


def digests_of_notebooks(cells: Iterable[Cell]) -> dict[str, str]:
    """Return a SHA-256 of each notebook that cells execute."""
    names = sorted({cell.notebook for cell in cells})
    return {f"notebook {name}": _digest_of_notebook(name) for name in names}


def _digest_of_notebook(name: str) -> str:
    content = notebook_file(name).read_bytes()
    return hashlib.sha256(content).hexdigest()[:LENGTH]


def changes(journal: Journal, now: SessionBegun, mixed: bool) -> list[str]:
    """Return in sentences what changed since the last session.

    A changed file decides which cells there are, and what is finished stays. Changed code or
    another machine would make cells that do not compare.

    Raises
    ------
    ResumeRefused
        Code or machine changed, and ``mixed`` is not given.
    """
    if not journal.sessions:
        return []
    before = journal.sessions[-1]
    grave = [*_differing_sources(before, now), *_differing_machine(before, now)]
    if grave and not mixed:
        listed = "\n".join(f"  - {each}" for each in grave)
        raise ResumeRefused(
            f"{journal.path.parent}: its cells would not compare. Changed since it was last gone "
            f"on with:\n{listed}\nUndo that, begin anew with --new, or go on all the same with "
            "--mixed"
        )
    return [*_differing_cells(before, now), *grave]


def _differing_sources(before: SessionBegun, now: SessionBegun) -> Iterable[str]:
    # A notebook of which there are cells only now, or no more, compares with nothing.
    both = before.sources.keys() & now.sources.keys()
    for name in sorted(both):
        if before.sources[name] != now.sources[name]:
            yield f"the code: {name} ({before.sources[name]} -> {now.sources[name]})"


def _differing_machine(before: SessionBegun, now: SessionBegun) -> Iterable[str]:
    return (f"the machine: {each}" for each in differences(before.machine, now.machine))


def _differing_cells(before: SessionBegun, now: SessionBegun) -> Iterable[str]:
    if before.file_sha256 == now.file_sha256:
        return
    new, gone = set(now.cells) - set(before.cells), set(before.cells) - set(now.cells)
    yield (
        f"the sweep file changed: {len(new)} cells are new, {len(gone)} are no longer asked for, "
        f"{len(set(now.cells) & set(before.cells))} are as they were"
    )
