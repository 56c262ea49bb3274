"""The reference: runs that ship with the lab, for those who have not measured yet.

Each is an archive in ``data/reference/``: the record and the trials of a run, without the rows of
requests and of what came in streams: verdicts do not need them, and of the figures that do the
tables are in the archive. Runs of an experiment beside the one that is shown have the samples of
one instant a second, and those around begin and end of what was measured: every share of CPU
between these is the same. An archive is unpacked when it is read for the first time.
"""

from __future__ import annotations

import lzma
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

from perflab.errors import RecordingError
from perflab.host.own_folders import own_folder
from perflab.paths import reference_dir, state_dir
from perflab.recordings.files import sha256_of
from perflab.recordings.run import Run

SUFFIX = ".tar.xz"
# Beside a packed run: the tables of figures that need rows of requests, as CSV; and an empty file
# for the run of an experiment that is shown where several ship, such as that with the defaults.
TABLES_OF_VIEWS, MAIN = "views", "main"
DIGITS = 16


def reference_ids() -> list[str]:
    """Return the ids of the runs of the reference, oldest first."""
    return sorted(path.name.removesuffix(SUFFIX) for path in reference_dir().glob(f"*{SUFFIX}"))


def reference_run(run_id: str) -> Run:
    """Return a run of the reference; RecordingError names an archive that is damaged."""
    return Run(_unpacked(reference_dir() / f"{run_id}{SUFFIX}"))


def reference_runs(experiment: str = "") -> list[Run]:
    """Return the runs of the reference, oldest first; all, or those of an experiment.

    Ids name the experiment, so that no archive of another one is unpacked. RecordingError names an
    archive that is damaged.
    """
    named = f"-{experiment}-" if experiment else ""
    return [reference_run(run_id) for run_id in reference_ids() if named in run_id]


def is_main(run: Run) -> bool:
    """Return whether a run of the reference is the one of its experiment that is shown."""
    return (run.path / MAIN).exists()


def is_reference(run: Run) -> bool:
    """Return whether a run is one of the reference."""
    return run.path.parent.parent == _place()


def _place() -> Path:
    return state_dir() / "reference"


def _unpacked(archive: Path) -> Path:
    """Return the folder of an archive's run; the digest in its path tells another version apart."""
    place = own_folder(_place())
    target = place / sha256_of(archive)[:DIGITS]
    if not target.exists():
        # Others may unpack it at the same time: each has a folder of its own, and the first stays.
        with tempfile.TemporaryDirectory(prefix=".", dir=place) as folder:
            _unpack(archive, Path(folder) / "run")
            with suppress(OSError):
                (Path(folder) / "run").rename(target)
    return target / archive.name.removesuffix(SUFFIX)


def _unpack(archive: Path, folder: Path) -> None:
    try:
        with tarfile.open(archive) as packed:
            # The first versions of Python 3.11 have no filters.
            packed.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            packed.extractall(folder)
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise RecordingError(f"{archive}: {error}; 'git checkout' brings it back") from error
    except OSError as error:
        raise RecordingError(f"{archive} cannot be unpacked in {folder.parent}: {error}") from error
