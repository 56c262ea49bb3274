"""Writing a run: the record is replaced atomically, a trial is committed whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from perflab.errors import RecordingError
from perflab.recordings.schema import REQUIRED_COLUMNS, RUN_FILE, TRIALS_FOLDER, RunRecord


def new_run_id(experiment: str) -> str:
    """Return ``<UTC time>-<experiment>-<6 hex>``."""
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"{now}-{experiment}-{secrets.token_hex(3)}"


class RunWriter:
    """The only writer of a run's folder."""

    def __init__(self, path: Path, record: RunRecord) -> None:
        self.path = path
        self.record = record

    @classmethod
    def create(cls, root: Path, record: RunRecord) -> RunWriter:
        """Make the folder of a new run."""
        path = root / record.run_id
        with _explained(path):
            (path / TRIALS_FOLDER).mkdir(parents=True)
        writer = cls(path, record)
        writer.update()
        return writer

    @classmethod
    def reopen(cls, path: Path) -> RunWriter:
        """Open an existing run for more trials; a half-written trial is removed."""
        from perflab.recordings.reader import read_record

        record = read_record(path)
        for leftover in (path / TRIALS_FOLDER).glob(".tmp-*"):
            shutil.rmtree(leftover)
        return cls(path, record)

    def update(self, **changes: Any) -> None:
        """Change fields of the record and replace ``run.json`` atomically."""
        values = {**self.record.model_dump(), **changes}
        self.record = RunRecord.model_validate(values)
        temporary = self.path / f".{RUN_FILE}.tmp"
        with _explained(self.path):
            with temporary.open("w") as file:
                file.write(self.record.model_dump_json(indent=2) + "\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(self.path / RUN_FILE)
            _sync_folder(self.path)

    def supersede(self, trial_ids: Sequence[str]) -> None:
        """Mark trials as replaced by a later attempt."""
        if trial_ids:
            self.update(superseded=[*self.record.superseded, *trial_ids])

    def commit_trial(
        self,
        row: dict[str, Any],
        requests: pd.DataFrame | None,
        samples: pd.DataFrame | None,
        waits: pd.DataFrame | None = None,
    ) -> Path:
        """Write a trial's tables into a temporary folder, sync them, and rename it into place.

        Raises
        ------
        RecordingError
            A column is missing, the trial exists already, or the disk is full; trials committed
            before stay as they are.
        """
        target = self.path / TRIALS_FOLDER / row["trial_id"]
        if target.exists():
            raise RecordingError(f"trial {row['trial_id']} is committed already in {self.path}")
        given = {
            "trial": pd.DataFrame([row]), "requests": requests, "samples": samples, "waits": waits
        }
        tables = {name: table for name, table in given.items() if table is not None}
        for name, table in tables.items():
            _require_columns(name, table)
        temporary = target.with_name(f".tmp-{row['trial_id']}")
        try:
            with _explained(self.path):
                temporary.mkdir()
                for name, table in tables.items():
                    _write_table(table, temporary / f"{name}.parquet")
                _sync_folder(temporary)
                temporary.rename(target)
                _sync_folder(target.parent)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return target


def _require_columns(name: str, table: pd.DataFrame) -> None:
    missing = [column for column in REQUIRED_COLUMNS[name] if column not in table.columns]
    if missing:
        raise RecordingError(f"table '{name}' lacks the columns {', '.join(missing)}")


def _write_table(table: pd.DataFrame, path: Path) -> None:
    table.to_parquet(path, index=False, compression="zstd")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _explained:  # noqa: N801
    """Turns errors of the file system into ones that say what to do."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if not isinstance(error, OSError):
            return
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise RecordingError(
                f"no space left for {self._path}; committed trials are kept. Free some space, or "
                "set PERFLAB_RUNS to another disk, then resume the run"
            ) from error
        raise RecordingError(f"cannot write {self._path}: {error}") from error
