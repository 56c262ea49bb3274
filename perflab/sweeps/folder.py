"""The folder of a sweep: its journal, its lock, a copy of its file, and the output of cells."""

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
# Making a sweep's folder takes milliseconds, so that an older half one was broken off.
LATELY_S = 60.0


def new_folder(sweep: Sweep) -> Path:
    """Make the folder of a new sweep: ``<UTC time>-<name of the file>-<id>``."""
    began = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    folder = sweeps_dir() / f"{began}-{sweep.name}-{secrets.token_hex(3)}"
    sweeps_dir().mkdir(parents=True, exist_ok=True)
    remove_broken_off(sweeps_dir(), age_s=LATELY_S)
    with whole_folder(folder) as unfinished:
        write_file(unfinished / COPY, lambda file: file.write(sweep.content))
    return folder


def newest_folder(sweep: Sweep) -> Path:
    """Return the newest folder of a sweep."""
    folders = [path.parent for path in sweeps_dir().glob(f"*/{COPY}")]
    # The sweep's name stands between time and id.
    alike = [path for path in folders if "-".join(path.name.split("-")[1:-1]) == sweep.name]
    if not alike:
        raise ParameterError(
            "--resume", [f"there is no sweep '{sweep.name}' in {sweeps_dir()}; leave --resume out"]
        )
    return max(alike)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder while the block runs; HostBusy where another process has it."""
    with (folder / LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostBusy(
                f"sweep {folder} is being carried out already; wait for it to end"
            ) from None
        # Nobody else writes here now: a killed process left the unfinished files.
        for place in (folder, *folder.glob("cells/*")):
            remove_broken_off(place)
        yield


def session_now(sweep: Sweep, machine: Mapping[str, Any] | None = None) -> SessionBegun:
    """Return the session that begins now, on this host or another ``machine``."""
    return SessionBegun(
        cells=tuple(cell.id for cell in sweep.cells),
        sources={**sources(systems_of(sweep.cells)), **digests_of_notebooks(sweep.cells)},
        machine=dict(facts.machine() if machine is None else machine),
    )


def digests_of_notebooks(cells: Iterable[Cell]) -> dict[str, str]:
    """Return the beginning of the SHA-256 of each notebook that cells execute."""
    return {
        f"notebook {name}": hashlib.sha256(notebook_file(name).read_bytes()).hexdigest()[:LENGTH]
        for name in sorted({cell.notebook for cell in cells})
    }


def refuse_changes(journal: Journal, now: SessionBegun) -> None:
    """Refuse code or a machine that changed since the last session.

    The sweep file may change: it decides which cells there are, and finished cells stay.
    """
    if not journal.sessions:
        return
    before = journal.sessions[-1]
    # A notebook of only one of the two sessions has nothing to compare with.
    both = [name for name in now.sources if name in before.sources]
    old, new = ({name: item.sources[name] for name in both} for item in (before, now))
    problems = [
        *(f"the code: {difference}" for difference in differences(old, new)),
        *(f"the machine: {item}" for item in differences(before.machine, now.machine)),
    ]
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise ResumeRefused(
            f"{journal.path.parent}: its cells would not compare. Changed since the last session:\n"
            f"{listed}\nUndo that, or begin anew without --resume"
        )
