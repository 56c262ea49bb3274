"""Reading a run: a snapshot of its folder as data frames."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from perflab.display import named_values
from perflab.errors import RecordingError
from perflab.recordings.schema import (
    OPTIONAL,
    SCHEMA_VERSION,
    TABLES,
    RunRecord,
    check_columns,
    parse_trial_id,
)
from perflab.recordings.tables import TRIAL

IDENTITY = ("trial_id", "treatment", "block")


def read_record(path: Path) -> RunRecord:
    """Read ``run.json`` of a run's folder.

    Raises
    ------
    RecordingError
        There is none, it is damaged, or a newer perflab wrote it.
    """
    file = path / "run.json"
    try:
        words = json.loads(file.read_bytes())
        version = int(words["schema_version"])
    except FileNotFoundError:
        raise RecordingError(f"{path}: is not a run (it holds no run.json)") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordingError(f"{file}: is damaged or unreadable: {error!r}") from error
    if version > SCHEMA_VERSION:
        raise RecordingError(
            f"{file}: has schema version {version}, this perflab reads up to {SCHEMA_VERSION}; "
            "read it with a newer perflab"
        )
    try:
        return RunRecord.model_validate(words)
    except ValidationError as error:
        raise RecordingError(f"{file}: is not a valid record: {error}") from error


class Run:
    """One run as it was when first looked at; open it again to see newer trials.

    Attributes
    ----------
    path : Path
        The run's folder.
    problems : list of str
        Trials that cannot be read, and why; they are left out of every table.

    Raises
    ------
    RecordingError
        The folder holds no readable record.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.record = read_record(self.path)
        self.problems: list[str] = []
        self._damaged: set[str] = set()
        self._cache: dict[tuple[str, str], pd.DataFrame] = {}

    def __repr__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.facts())

    def _repr_html_(self) -> str:
        return named_values(self.facts(), ("what", "value"), "Run")._repr_html_()

    def facts(self) -> list[tuple[str, str]]:
        """Return in words which run this is, how far it came, and where it lies."""
        record, trials = self.record, self.trials()
        own = int((~trials["superseded"].astype(bool)).sum())
        because = f" ({record.reason})" if record.reason else ""
        return [
            ("run", self.run_id),
            ("state", f"{record.state}{because}"),
            ("backend", record.backend),
            ("blocks", str(record.blocks)),
            ("trials", f"{len(self.valid_trials())} of {own} valid"),
            ("folder", str(self.path)),
        ]

    @property
    def run_id(self) -> str:
        """Return the run's id."""
        return self.record.run_id

    def trials(self) -> pd.DataFrame:
        """Return one row per committed trial in the order they ran, with ``superseded``."""
        trials = self._trials
        return trials[~trials["trial_id"].isin(self._damaged)].reset_index(drop=True)

    def valid_trials(self) -> pd.DataFrame:
        """Return the trials that may enter a comparison: valid and not superseded."""
        trials = self.trials()
        chosen = (trials["state"] == "valid") & ~trials["superseded"]
        return trials[chosen].reset_index(drop=True)

    def requests(
        self, stage: str | None = "measure", trial_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the requests of a stage (None: of all), with trial_id, treatment and block.

        Parameters
        ----------
        trial_ids : sequence of str, optional
            By default those of :meth:`valid_trials`: what does not count must be asked for.

        Raises
        ------
        RecordingError
            A trial id is not in the run.
        """
        found = self._joined("requests", trial_ids)
        return found if stage is None else found[found["stage"] == stage].reset_index(drop=True)

    def samples(self, trial_ids: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the samples of CPU and memory; see :meth:`requests`."""
        return self._joined("samples", trial_ids)

    def waits(self, trial_ids: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the database's wait events; empty without a database. See :meth:`requests`."""
        return self._joined("waits", trial_ids)

    def stacks(self, trial_ids: Sequence[str] | None = None) -> pd.DataFrame:
        """Return profiled stacks; empty where no profiler ran. See :meth:`requests`."""
        return self._joined("stacks", trial_ids)

    def messages(self, trial_ids: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the messages of streams; empty without any. See :meth:`requests`.

        There may be a million in a trial: ask for one trial at a time where that will do. They
        are read anew each time.
        """
        found = self._joined("messages", trial_ids)
        for name in [name for name in self._cache if name[0] == "messages"]:
            del self._cache[name]
        return found

    @cached_property
    def _trials(self) -> pd.DataFrame:
        tables = []
        for folder in sorted(self.path.glob("trials/b*")):
            try:
                tables.append(_read_trial(folder))
            except (OSError, pa.ArrowException, RecordingError) as error:
                self._skip(folder.name, error)
        joined = pa.concat_tables([TRIAL.empty_table(), *tables], promote_options="default")
        frame: pd.DataFrame = joined.to_pandas()
        # Runs from before reasons had sides do not say whose fault they tell of.
        frame["reason_sides"] = [
            ["unknown"] * len(reasons) if sides is None else list(sides)
            for reasons, sides in zip(frame["reasons"], frame["reason_sides"], strict=True)
        ]
        frame["superseded"] = frame["trial_id"].isin(self.record.superseded).astype(bool)
        return frame.sort_values(["block", "position", "attempt"], ignore_index=True)

    def _skip(self, trial: str, error: Exception) -> None:
        self._damaged.add(trial)
        reason = str(error).strip().splitlines()
        self.problems.append(
            f"trial {trial} is damaged and left out: {reason[0] if reason else repr(error)}"
        )

    def _joined(self, kind: str, trial_ids: Sequence[str] | None) -> pd.DataFrame:
        trials = self.trials().set_index("trial_id", drop=False)
        chosen = list(self.valid_trials()["trial_id"] if trial_ids is None else trial_ids)
        unknown = [name for name in chosen if name not in trials.index]
        if unknown:
            raise RecordingError(f"run {self.run_id} has no readable trial {', '.join(unknown)}")
        parts = []
        for name in chosen:
            table = self._table(kind, str(name))
            if table is not None and len(table):
                identity: Any = {column: trials.at[name, column] for column in IDENTITY}
                parts.append(table.assign(**identity))
        if not parts:
            nothing: pd.DataFrame = TABLES[kind].empty_table().to_pandas()
            return nothing.assign(trial_id="", treatment="", block=0)
        return pd.concat(parts, ignore_index=True)

    def _table(self, kind: str, trial: str) -> pd.DataFrame | None:
        file = self.path / "trials" / trial / f"{kind}.parquet"
        if (kind, trial) not in self._cache:
            if kind in OPTIONAL and not file.exists():
                return None
            try:
                found = pq.read_table(file, page_checksum_verification=True)
            except (OSError, pa.ArrowException) as error:
                self._skip(trial, error)
                return None
            # The words of a million messages are a handful.
            self._cache[kind, trial] = found.to_pandas(strings_to_categorical=kind == "messages")
        return self._cache[kind, trial]


def _read_trial(folder: Path) -> pa.Table:
    """Read a trial's row, and make sure that its other tables have readable footers."""
    parse_trial_id(folder.name)
    row = pq.read_table(folder / "trial.parquet", page_checksum_verification=True)
    if row.num_rows != 1 or row.column("trial_id")[0].as_py() != folder.name:
        raise RecordingError(f"{folder / 'trial.parquet'}: does not hold the row of this trial")
    for kind in TABLES:
        file = folder / f"{kind}.parquet"
        if kind not in OPTIONAL or file.exists():
            check_columns(kind, pq.read_schema(file).names, str(file))
    return row
