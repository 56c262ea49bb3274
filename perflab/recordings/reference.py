"""The reference: runs that ship with the lab, for those who have not measured yet.

Each is an archive in ``data/reference/``: the record and the trials of a run, without the rows of
requests and of what came in streams: verdicts do not need them, and of the figures that do the
tables are in the archive. Runs of an experiment beside the one that is shown have the samples of
one instant a second, and those around begin and end of what was measured: every share of CPU
between these is the same. An archive is unpacked when it is read for the first time.
"""

from __future__ import annotations

import lzma
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from perflab.errors import RecordingError
from perflab.host.own_folders import own_folder
from perflab.paths import reference_dir, state_dir
from perflab.recordings.columns import STREAMED, TABLES
from perflab.recordings.files import FILE, describe, sha256_of
from perflab.recordings.run import Run
from perflab.recordings.schema import FILE as RECORD
from perflab.recordings.store import as_json

SUFFIX = ".tar.xz"
# Beside a packed run: the tables of figures that need rows of requests, as CSV; and an empty file
# for the run of an experiment that is shown where several ship, such as that with the defaults.
TABLES_OF_VIEWS, MAIN = "views", "main"
DIGITS = 16


def without_rows(run: Run, target: Path, *, all_samples: bool = True) -> Run:
    """Copy a run to a new folder, without the rows of requests and of what came in streams.

    Without ``all_samples`` trials that did not share their time keep few of them. Nor does the copy
    say in which folder of its machine the interpreter was.
    """
    shutil.copytree(run.path, target)
    environment = {
        name: value for name, value in run.record.environment.items() if name != "prefix"
    }
    record = run.record.model_copy(update={"environment": environment})
    (target / RECORD).write_bytes(as_json(record))
    for kind in ("requests", *STREAMED):
        for table in target.glob(f"trials/*/{kind}.parquet"):
            pq.write_table(TABLES[kind].empty_table(), table)
    for trial in target.glob("trials/*"):
        if not all_samples and not run.record.shares_time:
            _thin(trial)
        for table in trial.glob("*.parquet"):
            # An archive of plain tables is a third smaller than one of compressed ones.
            pq.write_table(pq.read_table(table), table, compression="none", use_dictionary=False)
        (trial / FILE).unlink()
        (trial / FILE).write_bytes(describe(trial))
    return Run(target)


def _thin(trial: Path) -> None:
    """Keep the samples of one instant a second, and those around begin and end of the measuring."""
    (row,) = pq.read_table(trial / "trial.parquet", columns=["begin_ns", "end_ns"]).to_pylist()
    samples = pq.read_table(trial / "samples.parquet")
    table = samples.to_pandas().sort_values("t_ns", kind="stable")
    second = table["t_ns"] // 1_000_000_000
    kept = ~table.assign(second=second).duplicated(["service", "second"])
    for at_ns in (row["begin_ns"], row["end_ns"]):
        before, after = table[table["t_ns"] <= at_ns], table[table["t_ns"] >= at_ns]
        kept[before.groupby("service").tail(1).index] = True
        kept[after.groupby("service").head(1).index] = True
    kept[table.groupby("service").tail(1).index] = True
    chosen = samples.filter(pa.array(kept.sort_index().to_numpy()))
    pq.write_table(chosen, trial / "samples.parquet")


def pack(
    run: Run,
    folder: Path,
    beside: Mapping[str, str] | None = None,
    *,
    all_samples: bool = True,
) -> Path:
    """Write a run without those rows as an archive into ``folder``; return the archive's path.

    ``beside`` are texts to put beside it, by their places in its folder. Without ``all_samples`` it
    has those of one instant a second, and what shares of CPU need.
    """
    archive = folder / f"{run.run_id}{SUFFIX}"
    with tempfile.TemporaryDirectory() as place, tarfile.open(archive, "w:xz", preset=9) as packed:
        copy = without_rows(run, Path(place) / run.run_id, all_samples=all_samples)
        for name, text in (beside or {}).items():
            (copy.path / name).parent.mkdir(exist_ok=True)
            (copy.path / name).write_text(text)
        packed.add(copy.path, run.run_id)
    return archive


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
