"""The folder of a sweep: its journal, its lock, its file as it was, and what cells left."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perflab.errors import HostBusy, ParameterError, ResumeRefused
from perflab.host import facts
from perflab.host.facts import LENGTH, sources
from perflab.host.files import remove_broken_off, whole_folder, write_file
from perflab.paths import notebook_file, sweeps_dir
from perflab.recordings.sameness import differences
from perflab.sweeps.cells import Cell, Sweep, systems_of
from perflab.sweeps.journal import Journal, SessionBegun

COPY = "sweep.yaml"
LOCK = "lock"
# Whoever makes a sweep's folder is done with it in milliseconds.
LATELY_S = 60.0


def new_folder(sweep: Sweep) -> Path:
    """Make the folder of a new sweep: ``<UTC time>-<name of the file>-<id>``."""
    began = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    folder = sweeps_dir() / f"{began}-{sweep.name}-{secrets.token_hex(3)}"
    sweeps_dir().mkdir(parents=True, exist_ok=True)
    remove_broken_off(sweeps_dir(), age_s=LATELY_S)
    with whole_folder(folder) as half:
        write_file(half / COPY, lambda file: file.write(sweep.content))
    return folder


def newest_folder(sweep: Sweep) -> Path:
    """Return the folder to go on with."""
    folders = [path.parent for path in sweeps_dir().glob(f"*/{COPY}")]
    # Its name stands between time and id.
    alike = [path for path in folders if "-".join(path.name.split("-")[1:-1]) == sweep.name]
    if not alike:
        raise ParameterError(
            "--resume", [f"there is no sweep '{sweep.name}' in {sweeps_dir()}; leave --resume out"]
        )
    return max(alike)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the folder's lock while the block runs; HostBusy where another process has it."""
    with (folder / LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostBusy(
                f"sweep {folder} is being carried out already; wait for it to end"
            ) from None
        # Nobody else writes here now: what is half was left by one who was killed.
        for place in (folder, *folder.glob("cells/*")):
            remove_broken_off(place)
        yield


def session_now(sweep: Sweep, machine: Mapping[str, Any] | None = None) -> SessionBegun:
    """Return what a session that begins now measures, on this host or another ``machine``."""
    return SessionBegun(
        cells=tuple(cell.id for cell in sweep.cells),
        file_sha256=hashlib.sha256(sweep.content).hexdigest(),
        sources={**sources(systems_of(sweep.cells)), **digests_of_notebooks(sweep.cells)},
        machine=dict(facts.machine() if machine is None else machine),
    )


def digests_of_notebooks(cells: Iterable[Cell]) -> dict[str, str]:
    """Return a SHA-256 of each notebook that cells execute."""
    return {
        f"notebook {name}": hashlib.sha256(notebook_file(name).read_bytes()).hexdigest()[:LENGTH]
        for name in sorted({cell.notebook for cell in cells})
    }


def changes(journal: Journal, now: SessionBegun) -> str:
    """Say how the sweep file changed since the last session; refuse changed code and machines.

    A changed file decides which cells there are, and what is finished stays.
    """
    if not journal.sessions:
        return ""
    before = journal.sessions[-1]
    _refuse_changes(journal.path.parent, before, now)
    if before.file_sha256 == now.file_sha256:
        return ""
    new, gone = set(now.cells) - set(before.cells), set(before.cells) - set(now.cells)
    kept = len(set(now.cells) & set(before.cells))
    return (
        f"the sweep file changed: {len(new)} cells are new, {len(gone)} are no longer asked for, "
        f"{kept} are as they were"
    )


def _refuse_changes(folder: Path, before: SessionBegun, now: SessionBegun) -> None:
    # A notebook of which there are cells only now, or no more, compares with nothing.
    both = [name for name in now.sources if name in before.sources]
    was, is_now = ({name: it.sources[name] for name in both} for it in (before, now))
    grave = [
        *(f"the code: {each}" for each in differences(was, is_now)),
        *(f"the machine: {each}" for each in differences(before.machine, now.machine)),
    ]
    if grave:
        listed = "\n".join(f"  - {each}" for each in grave)
        raise ResumeRefused(
            f"{folder}: its cells would not compare. Changed since it was last gone on with:\n"
            f"{listed}\nUndo that, or begin anew without --resume"
        )
