"""Writing a run: its record is replaced, its trials are committed whole."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from perflab.durable import (
    explained,
    remove_broken_off,
    replace_file,
    whole_folder,
    write_file,
)
from perflab.errors import RecordingError
from perflab.parameters import did_you_mean
from perflab.recordings import manifest
from perflab.recordings.columns import ALWAYS, schemas
from perflab.recordings.opening import check_folder
from perflab.recordings.schema import RunRecord, read_record
from perflab.recordings.tables import trial_table, typed_table

Table: TypeAlias = pd.DataFrame | pa.Table
# Whoever makes a run's folder is done with it in milliseconds.
LATELY_S = 60.0


def new_run_id(experiment: str) -> str:
    """Return ``<UTC time>-<experiment>-<6 hex digits>``; ids sort by time."""
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"{now}-{experiment}-{secrets.token_hex(3)}"


class RunWriter:
    """The one writer of a run's folder. Make it with :meth:`create` or :meth:`reopen`."""

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
        with explained(path, "nothing was recorded"):
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            _check_owner(path.parent)
            remove_broken_off(path.parent, age_s=LATELY_S)
            with whole_folder(path) as folder:
                (folder / "trials").mkdir()
                write_file(folder / "run.json", lambda file: file.write(_as_json(record)))
        return cls(path, record)

    @classmethod
    def reopen(cls, path: Path) -> RunWriter:
        """Open an existing run to write on; what an aborted commit left is removed."""
        writer = cls(path, read_record(path))
        with explained(path, "the committed trials are unharmed"):
            (path / "trials").mkdir(exist_ok=True)
            check_folder(path / "trials")
            for folder in (path, path / "trials"):
                remove_broken_off(folder)
        return writer

    def update(self, **changes: Any) -> None:
        """Change fields of the record and rewrite ``run.json`` atomically."""
        fields = {name: getattr(self.record, name) for name in RunRecord.model_fields}
        changed = RunRecord.model_validate({**fields, **changes})
        path = self.path / "run.json"
        with explained(path, "the record as it was before and all committed trials are readable"):
            replace_file(path, _as_json(changed))
        self.record = changed

    def commit_trial(
        self,
        row: Mapping[str, Any],
        requests: Table | None,
        samples: Table | None,
        **others: Table | None,
    ) -> Path:
        """Write one trial whole and return its folder.

        A failed trial's row needs only who it is, its state and its reasons. Tables are as their
        schemas say (:func:`perflab.recordings.columns.schemas`); those that are None have no rows,
        and of the others no file. RecordingError where something does not fit, the trial is
        committed already, or the disk is full; earlier trials stay readable.
        """
        table = trial_table(row)
        name = str(row["trial_id"])
        known = [treatment.name for treatment in self.record.treatments]
        if row["treatment"] not in known:
            raise RecordingError(f"trial {name}: treatment '{row['treatment']}' is not in the run")
        given = {"requests": requests, "samples": samples, **others}
        files = {"trial": table, **self._typed(given, f"trial {name}")}
        target = self.path / "trials" / name
        if target.exists():
            raise RecordingError(f"{target}: this trial is committed already; take a new attempt")
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
    def _write(target: Path, files: Mapping[str, pa.Table]) -> None:
        def fill(file: BinaryIO, table: pa.Table) -> None:
            pq.write_table(table, file, compression="zstd", write_page_checksum=True)

        with whole_folder(target) as folder:
            for kind, table in files.items():
                write_file(folder / f"{kind}.parquet", partial(fill, table=table))
            listed = manifest.describe(folder)
            write_file(folder / manifest.FILE, lambda file: file.write(listed))

    def supersede(self, trial_ids: Iterable[str]) -> None:
        """Mark trials as replaced; they stay in the folder and out of every comparison."""
        marked = list(dict.fromkeys([*self.record.superseded, *trial_ids]))
        if marked != self.record.superseded:
            self.update(superseded=marked)


def _check_owner(root: Path) -> None:
    """Refuse another user's folder: its owner could change what is recorded there."""
    owner = root.stat().st_uid
    if os.getuid() not in (0, owner):
        raise RecordingError(
            f"{root} belongs to another user (id {owner}): point PERFLAB_RUNS at a folder of yours"
        )


def _as_json(record: RunRecord) -> bytes:
    return record.model_dump_json(indent=2).encode() + b"\n"
