"""The record of a load on disk: every request and the summary, and the folder for them.

The folder is checked before anything is sent. Temporary folders are removed with their process,
unless a message has named them to the user.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from perflab.credentials import masked
from perflab.errors import LoadError, ParameterError
from perflab.host.files import replace_file, whole_file
from perflab.host.temporary_folders import OWNER, temporary_folder
from perflab.load.checks.machine_counts import MachineCounts
from perflab.load.records.columns import PHASE, frame
from perflab.load.records.failure_stop import FailureStop, mark
from perflab.load.records.loop_probe import CPU, CPU_FILE, WAKEUP, WAKEUPS_FILE, grown_ns
from perflab.load.records.names import PHASE_NAMES, names_in
from perflab.load.records.result import LoadResult
from perflab.load.records.spool import rows_in
from perflab.load.records.wakeups import Wakeups
from perflab.load.summary import LoadSummary
from perflab.load.workload.arrivals import ClosedLoop, OpenLoop, Scripted
from perflab.load.workload.schedule import active, planned_count
from perflab.load.workload.windows import Cycles, cut_at, instants_of
from perflab.load.workload.workload import Workload

FILE = "load.json"
ROWS_PER_GROUP = 1 << 20
# The kind of temporary folders for raw rows.
RAW_ROWS = "load"
LEAST_FREE_BYTES = 64 * 1024 * 1024
# A raw row with its phases, and both again as Parquet.
BYTES_PER_REQUEST = 250


def write(
    folder: Path, result: LoadResult, workload: Workload, summary: LoadSummary, url: str
) -> None:
    """Write ``requests.parquet`` and ``load.json``; both appear whole or not at all."""
    with whole_file(folder / "requests.parquet") as file:
        _write_requests(file, result)
    tables = {
        "messages": result.messages,
        "progress": result.progress,
        "chunks": result.stream_chunks,
    }
    for name, rows in tables.items():
        if len(rows):
            table = pa.Table.from_pandas(rows, preserve_index=False)
            with whole_file(folder / f"{name}.parquet") as file:
                pq.write_table(table, file)
    asked = {"url": url, "workload": workload.model_dump(mode="json")}
    record = {**asked, **summary.model_dump(mode="json")}
    replace_file(folder / FILE, (json.dumps(record, indent=1) + "\n").encode())


def read(folder: Path) -> LoadSummary:
    """Read the summary in a load's folder; OSError or ValueError where it cannot be read."""
    record = json.loads((folder / FILE).read_text())
    return LoadSummary.model_validate(
        {name: value for name, value in record.items() if name not in ("url", "workload")}
    )


def _write_requests(file: BinaryIO, result: LoadResult) -> None:
    """Write the requests of all workers, piece by piece."""
    phases = sorted(
        {PHASE.format(name) for place in result.places for name in names_in(place, PHASE_NAMES)}
    )
    writer: pq.ParquetWriter | None = None
    for number, (place, rows) in enumerate(zip(result.places, result.rows, strict=True)):
        for begin in range(0, max(1, len(rows)), ROWS_PER_GROUP):
            table = frame(place, number, begin, begin + ROWS_PER_GROUP)
            for name in phases:
                table[name] = table.get(name, np.float32(np.nan))
            group = pa.Table.from_pandas(
                table, schema=writer and writer.schema, preserve_index=False
            )
            writer = writer or pq.ParquetWriter(file, group.schema, compression="zstd")
            writer.write_table(group)
    if writer is not None:
        writer.close()


@dataclass
class Place:
    """A folder for a record; ``keep`` says that it must outlive the load."""

    folder: Path
    keep: bool = False

    @property
    def raw(self) -> Path:
        """Return the folder that workers write to."""
        return self.folder / "raw"


def folder_problems(option: str, folder: Path) -> list[str]:
    """Return why a new folder cannot be made, without making it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        return [f"{option} {folder} exists; name a new folder, nothing is overwritten"]
    above = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not above.is_dir():
        return [f"{option} {folder}: {above} is no folder; name another place"]
    if not os.access(above, os.W_OK | os.X_OK):
        return [f"{option} {folder}: {above} cannot be written to; name another place"]
    return []


def check_space(folder: Path, workload: Workload) -> None:
    """Raise ParameterError for a disk that the record would fill."""
    needed = LEAST_FREE_BYTES + BYTES_PER_REQUEST * max(0, planned_count(workload.arrivals))
    free = shutil.disk_usage(folder).free
    if free < needed:
        text = f"{folder} has {free >> 20} MiB free, the record may need {needed >> 20}"
        way_out = "make room, or name another disk with --out (without --out: with TMPDIR)"
        raise ParameterError("perflab load", [f"{text}: {way_out}"])


@contextlib.contextmanager
def place(folder: Path | None, workload: Workload) -> Iterator[Place]:
    """Yield the folder for raw rows: the record's own, or a temporary one that is removed.

    A folder without a record is removed again. Raise ParameterError or LoadError if the folder
    cannot be written, or its disk is too full.
    """
    new_folders: list[Path] = []
    try:
        if folder is None:
            root = temporary_folder(RAW_ROWS)
            new_folders = [root]
        else:
            root = folder.resolve()
            new_folders = [one for one in (root, *root.parents) if not one.exists()]
            root.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=root).close()
    except OSError as error:
        raise LoadError(f"cannot write {error.filename}: {error.strerror}") from None
    here = Place(root)
    try:
        check_space(root, workload)
        yield here
    finally:
        if folder is None and here.keep:
            # A message has named the folder to the user: without its owner's mark it stays.
            (root / OWNER).unlink(missing_ok=True)
        elif folder is None:
            shutil.rmtree(root, ignore_errors=True)
        with contextlib.suppress(OSError):
            for new_folder in new_folders:
                new_folder.rmdir()


def merged(
    folder: Path,
    reports: list[dict[str, Any]],
    workload: Workload,
    before: MachineCounts,
    start_ns: int,
) -> LoadResult:
    """Return the record of a load whose workers have reported, with a folder and report each.

    ``before`` was taken before anything was sent; windows count from the planned start.
    """
    steal_share, kernel = before.until(MachineCounts.now(before.cores))
    # Workers beyond the number of users have nothing to do.
    busy = reports[: getattr(workload.arrivals, "users", len(reports))]
    first_errors: dict[tuple[str, int], str] = {}
    for report in reports:
        for kind, status, text in report["first_errors"]:
            first_errors.setdefault((kind, status), masked(text))
    stopped = next((report["stopped"] for report in reports if report["stopped"]), "")
    failure_stop = failure_stop_of(folder, reports, workload, stopped)
    windows = None
    if isinstance(workload.arrivals, (ClosedLoop, OpenLoop)) and workload.arrivals.windows:
        windows = instants_of(workload.arrivals, start_ns)
        if failure_stop:
            windows = cut_at(windows, failure_stop.at_ns)
        elif stopped:
            windows = cut_at(windows, start_ns + min(report["lasted_ns"] for report in busy))
    places = [folder / str(number) for number in range(len(reports))]
    result = LoadResult(
        folder=folder,
        workers=len(reports),
        cpu_ns=0,
        wakeups=[Wakeups.of(rows_in(place / WAKEUPS_FILE, WAKEUP)) for place in places],
        run_delay_share=0.0,
        unsent=sum(report["unsent"] for report in reports),
        lasted_s=min(report["lasted_ns"] for report in busy) / 1e9,
        first_errors=first_errors,
        capped=sum(report["capped"] for report in reports),
        resent=sum(report["resent"] for report in reports),
        users_lost=sum(report.get("users_lost", 0) for report in reports),
        stopped=workload.stop.failures_reached if failure_stop else stopped,
        failure_stop=failure_stop,
        clock_step_ms=max((report["clock_step_ms"] for report in reports), key=abs),
        real_time=all(report["real_time"] for report in reports),
        # Several workers may share a core.
        cores=len(set(before.cores)),
        steal_share=steal_share,
        kernel=kernel,
        windows=windows,
        measured_from_ns=start_ns + round(getattr(workload.arrivals, "warmup_s", 0.0) * 1e9),
        lasts_until_ns=_planned_end_ns(workload, start_ns) if not stopped else 0,
        cycles=_cycles(workload),
        timeout_s=workload.timeout_s,
    )
    used_ns, delayed_ns = (
        sum(grown_ns(rows_in(place / CPU_FILE, CPU), name, result.counted) for place in places)
        for name in ("used_ns", "delayed_ns")
    )
    delay_share = delayed_ns / max(1, len(reports) * result.counted_ns)
    return replace(result, cpu_ns=round(used_ns), run_delay_share=delay_share)


def _planned_end_ns(workload: Workload, start_ns: int) -> int:
    """Return the planned end of users who act for a time; 0 for other loads."""
    arrivals = workload.arrivals
    if not isinstance(arrivals, ClosedLoop | Scripted) or not arrivals.duration_s:
        return 0
    if getattr(arrivals, "requests", 0) or getattr(arrivals, "actions", 0):
        return 0
    return start_ns + round((arrivals.warmup_s + arrivals.duration_s) * 1e9)


def _cycles(workload: Workload) -> Cycles | None:
    """Return the cycles of users in the windows of a closed loop; None for other loads."""
    arrivals = workload.arrivals
    if not isinstance(arrivals, ClosedLoop) or arrivals.windows is None:
        return None
    think_ns, pacing_ns = (round(s * 1e9) for s in (arrivals.think_time_s, arrivals.pacing_s))
    return Cycles(arrivals.users, think_ns, pacing_ns)


def failure_stop_of(
    folder: Path, reports: list[dict[str, Any]], workload: Workload, stopped: str
) -> FailureStop | None:
    """Return a load's stop by its failures, if these ended it, and mark the later rows."""
    failures = workload.stop.failures
    if not failures or stopped not in ("", workload.stop.failures_reached):
        return None
    at_ns = mark(folder, len(reports), failures)
    if not at_ns:
        return None
    since_ns = at_ns - min(report["start_ns"] for report in reports)
    return FailureStop(failures, at_ns, since_ns / 1e9, active(workload.arrivals, since_ns))
