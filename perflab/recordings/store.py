"""Writes a run: replaces its record and commits whole trials."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from perflab.errors import RecordingError
from perflab.host.files import (
    ANEW,
    explained,
    remove_broken_off,
    replace_file,
    whole_folder,
    write_file,
)
from perflab.parameters import did_you_mean
from perflab.recordings.columns import ALWAYS, schemas
from perflab.recordings.files import FILE, describe
from perflab.recordings.run import Run
from perflab.recordings.schema import RunRecord, read_record
from perflab.recordings.tables import TRIAL_ID, parse_trial_id, trial_table, typed_table

Table: TypeAlias = pd.DataFrame | pa.Table
# Making a folder takes milliseconds, so an older unfinished one was broken off.
LATELY_S = 60.0


def new_run_id(experiment: str) -> str:
    """Return ``<UTC time>-<experiment>-<6 hex digits>``; ids sort by time."""
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"{now}-{experiment}-{secrets.token_hex(3)}"


class RunWriter:
    """The only writer of a run's folder; make it with :meth:`create` or :meth:`reopen`."""

    def __init__(self, path: Path, record: RunRecord) -> None:
        self.path = path
        self.record = record

    @classmethod
    def create(cls, root: Path, record: RunRecord) -> RunWriter:
        """Make the folder of a new run under ``root``.

        RecordingError where a run of that id exists, or the folder is another user's.
        """
        path = Path(root) / record.run_id
        if path.exists():
            raise RecordingError(f"{path}: a run of that id exists; a run id is used once")
        with explained(path, "nothing was recorded", ANEW):
            make_root(path.parent)
            with whole_folder(path) as folder:
                cls.begin(folder, record)
        return cls(path, record)

    @classmethod
    def begin(cls, folder: Path, record: RunRecord) -> RunWriter:
        """Begin a run in an empty folder, which the caller names when it is whole."""
        (folder / "trials").mkdir()
        write_file(folder / "run.json", lambda file: file.write(as_json(record)))
        return cls(folder, record)

    @classmethod
    def reopen(cls, path: Path) -> RunWriter:
        """Open an existing run for writing, and remove the remains of an aborted commit."""
        writer = cls(path, read_record(path))
        with explained(path, "the committed trials are unharmed"):
            (path / "trials").mkdir(exist_ok=True)
            for folder in (path, path / "trials"):
                remove_broken_off(folder)
        return writer

    def update(self, **changes: Any) -> None:
        """Change fields of the record and rewrite ``run.json`` atomically."""
        changed = RunRecord.model_validate({**dict(self.record), **changes})
        path = self.path / "run.json"
        with explained(path, "the record as it was before and all committed trials are readable"):
            replace_file(path, as_json(changed))
        self.record = changed

    def commit_trial(
        self,
        row: Mapping[str, Any],
        requests: Table | None,
        samples: Table | None,
        **others: Table | None,
    ) -> Path:
        """Write one trial whole and return its folder.

        The row of a failed trial needs only its identity, its state and its reasons. Tables have
        the schemas of :func:`perflab.recordings.columns.schemas`. Where ``requests`` or ``samples``
        is None the file has no rows; where another table is None there is no file. RecordingError
        where something does not fit, the trial is committed already, or the disk is full; earlier
        trials stay readable.
        """
        table = trial_table(row)
        name = str(row["trial_id"])
        known = [treatment.name for treatment in self.record.treatments]
        if row["treatment"] not in known:
            raise RecordingError(f"trial {name}: treatment '{row['treatment']}' is not in the run")
        tables = {"requests": requests, "samples": samples, **others}
        files = {"trial": table, **self._typed(tables, f"trial {name}")}
        target = self.path / "trials" / name
        if target.exists():
            raise RecordingError(
                f"{target}: this trial is committed already; a new attempt needs a new number"
            )
        with explained(target, "all trials before it are committed and readable"):
            self._write(target, files)
        return target

    def _typed(self, tables: Mapping[str, Table | None], where: str) -> dict[str, pa.Table]:
        known = schemas(self.record.tables)
        for kind in tables:
            if kind not in known:
                hint = did_you_mean(kind, known)
                raise RecordingError(f"{where}: the run has no table '{kind}'{hint}")
        return {
            kind: typed_table(kind, known[kind], table, where)
            for kind, table in tables.items()
            if kind in ALWAYS or table is not None
        }

    @staticmethod
    def _write(target: Path, tables: Mapping[str, pa.Table]) -> None:
        with whole_folder(target) as folder:
            for kind, table in tables.items():
                fill = partial(pq.write_table, table, compression="zstd", write_page_checksum=True)
                write_file(folder / f"{kind}.parquet", fill)
            manifest = describe(folder)
            write_file(folder / FILE, lambda file: file.write(manifest))

    def supersede(self, trial_ids: Iterable[str]) -> None:
        """Mark trials as replaced; they stay in the folder but enter no comparison."""
        marked = list(dict.fromkeys([*self.record.superseded, *trial_ids]))
        if marked != self.record.superseded:
            self.update(superseded=marked)


def make_root(root: Path) -> None:
    """Make the folder of runs if there is none, and remove unfinished runs from it.

    RecordingError where it is another user's, who could change what is recorded there.
    """
    root.mkdir(0o700, parents=True, exist_ok=True)
    owner = root.stat().st_uid
    if os.getuid() not in (0, owner):
        raise RecordingError(
            f"{root} belongs to another user (id {owner}): point PERFLAB_RUNS at a folder of yours"
        )
    remove_broken_off(root, age_s=LATELY_S)


def as_json(record: RunRecord) -> bytes:
    """Return a record as the content of its file."""
    return record.model_dump_json(indent=2).encode() + b"\n"


def remainder(
    record: RunRecord, committed: Sequence[str], unreadable: Iterable[str] = ()
) -> tuple[dict[int, int], list[str]]:
    """Return the blocks to measure with their attempt numbers, and the trials that they replace.

    ``committed`` are the ids of the readable trials. A block is finished when every position of its
    order has a committed trial of any state. All trials of an unfinished block are replaced, so
    that a block is measured without a break. The ``unreadable`` trials do not count, but their ids
    are taken.
    """
    by_block: dict[int, list[str]] = {}
    taken: dict[int, int] = {}
    for name in committed:
        by_block.setdefault(parse_trial_id(name)[0], []).append(name)
    for name in [*unreadable, *committed]:
        block, _, attempt = parse_trial_id(name)
        taken[block] = max(taken.get(block, 0), attempt + 1)
    blocks, superseded = [], []
    for block, order in enumerate(record.order):
        current = [name for name in by_block.get(block, []) if name not in record.superseded]
        if {parse_trial_id(name)[1] for name in current} == set(range(len(order))):
            continue
        blocks.append(block)
        superseded.extend(sorted(current))
    # Blocks that were begun come first: only these have an attempt above 0.
    blocks.sort(key=lambda block: (block not in taken, block))
    return {block: taken.get(block, 0) for block in blocks}, superseded


def is_whole(run: Run) -> bool:
    """Return whether a run is finished and has all its trials."""
    return run.record.state == "finished" and not remaining_blocks(run.record, run.path)[0]


def remaining_blocks(record: RunRecord, path: Path) -> tuple[dict[int, int], list[str]]:
    """Return the blocks to measure with their attempt numbers, and the trials that they replace."""
    readable = [str(name) for name in Run(path).trials()["trial_id"]]
    on_disk = [folder.name for folder in path.glob("trials/b*") if TRIAL_ID.fullmatch(folder.name)]
    return remainder(record, readable, set(on_disk) - set(readable))
