"""Reading a run: its record and its tables, whether or not it is finished."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pandas as pd
from pydantic import ValidationError

from perflab.errors import RecordingError, RunNotFound
from perflab.recordings.schema import (
    REQUIRED_COLUMNS,
    RUN_FILE,
    SCHEMA_VERSION,
    TRIALS_FOLDER,
    RunRecord,
)


def read_record(path: Path) -> RunRecord:
    """Read ``run.json`` of a run's folder.

    Raises
    ------
    RunNotFound
        There is no ``run.json``.
    RecordingError
        It is damaged, or a newer perflab wrote it.
    """
    file = path / RUN_FILE
    try:
        record = RunRecord.model_validate_json(file.read_text())
    except FileNotFoundError:
        raise RunNotFound(f"{path} holds no {RUN_FILE}: it is not a run") from None
    except ValidationError as error:
        raise RecordingError(f"{file} is damaged: {error}") from None
    if record.schema_version > SCHEMA_VERSION:
        raise RecordingError(
            f"{file} has schema version {record.schema_version}, this perflab reads up to "
            f"{SCHEMA_VERSION}: update perflab to read it"
        )
    return record


class Run:
    """A recorded run.

    Attributes
    ----------
    problems : list of str
        Trial folders that could not be read; they are left out of every table.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.record = read_record(self.path)
        self.problems: list[str] = []

    @property
    def run_id(self) -> str:
        """Return the run's identity."""
        return self.record.run_id

    def __repr__(self) -> str:
        return f"<Run {self.run_id} ({self.record.state}, {self.record.backend})>"

    @cached_property
    def _rows(self) -> pd.DataFrame:
        rows = []
        for folder in sorted((self.path / TRIALS_FOLDER).glob("b*")):
            try:
                row = pd.read_parquet(folder / "trial.parquet")
            except (OSError, ValueError) as error:
                self.problems.append(f"{folder.name}: {error}")
                continue
            rows.append(row)
        if not rows:
            return pd.DataFrame(columns=[*REQUIRED_COLUMNS["trial"], "superseded"])
        table = pd.concat(rows, ignore_index=True)
        table["superseded"] = table["trial_id"].isin(self.record.superseded)
        return table

    def trials(self) -> pd.DataFrame:
        """Return one row per committed trial, superseded ones too."""
        return self._rows.copy()

    def valid_trials(self) -> pd.DataFrame:
        """Return the trials that may enter a comparison."""
        rows = self._rows
        keep = (rows["state"] == "valid") & ~rows["superseded"].astype(bool)
        return rows[keep].reset_index(drop=True)

    def requests(
        self, stage: str | None = "measure", trial_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return requests of valid trials (or the given ones), with trial, treatment and block."""
        table = self._table("requests", trial_ids)
        if stage is None or table.empty:
            return table
        return table[table["stage"] == stage].reset_index(drop=True)

    def samples(self, trial_ids: Sequence[str] | None = None) -> pd.DataFrame:
        """Return samples of valid trials (or the given ones), with trial, treatment and block."""
        return self._table("samples", trial_ids)

    def waits(self, trial_ids: Sequence[str] | None = None) -> pd.DataFrame:
        """Return wait events of valid trials (or the given ones)."""
        return self._table("waits", trial_ids)

    def _table(self, name: str, trial_ids: Sequence[str] | None) -> pd.DataFrame:
        rows = self.valid_trials() if trial_ids is None else self._rows[
            self._rows["trial_id"].isin(list(trial_ids))
        ]
        parts = []
        for row in rows.itertuples():
            file = self.path / TRIALS_FOLDER / str(row.trial_id) / f"{name}.parquet"
            if file.exists():
                part = pd.read_parquet(file)
                parts.append(
                    part.assign(trial_id=row.trial_id, treatment=row.treatment, block=row.block)
                )
        if not parts:
            columns = [*REQUIRED_COLUMNS[name], "trial_id", "treatment", "block"]
            return pd.DataFrame(columns=columns)
        return pd.concat(parts, ignore_index=True)
