"""Reads a run: a snapshot of its folder as data frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, partial, wraps
from pathlib import Path
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import pyarrow as pa

from perflab.errors import RecordingError, RowsMissing
from perflab.parameters import did_you_mean
from perflab.recordings.columns import ALWAYS, STREAMED, schemas
from perflab.recordings.display import named_values
from perflab.recordings.responses import (
    CLIENT_LATE,
    COUNTED_INSIDE,
    FAILURES,
    TOO_MANY_FAILED,
    split_request,
)
from perflab.recordings.schema import RunRecord, is_imported, read_record
from perflab.recordings.tables import (
    KINDS_OF_REMARK,
    NOT_JUDGED,
    TRIAL,
    has_rows,
    read_row,
    read_table,
    remarks,
)
from perflab.statistics.in_words import counted

# Up to this many treatments with another number of trials are named; more are counted.
MOST_NAMED = 3
IDENTITY = ("trial_id", "treatment", "block")
Found = TypeVar("Found")


class Run:
    """The run in the folder ``path`` at its first reading; open it again to see newer trials.

    RecordingError where the folder holds no readable record.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.record = read_record(self.path)
        # What is wrong with each damaged trial.
        self._damaged: dict[str, str] = {}
        self._cache: dict[tuple[str, str], pa.Table] = {}

    def __repr__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.facts())

    def _repr_html_(self) -> str:
        return named_values(self.facts(), ("what", "value"), "Run")._repr_html_()

    def facts(self) -> list[tuple[str, str]]:
        """Return id, state, progress and folder of the run, in words."""
        record, count = self.record, len(self.current_trials())
        because = f" ({record.reason})" if record.reason else ""
        valid = f"{len(self.valid_trials())} of {count} valid"
        return [
            ("run", self.run_id),
            ("state", f"{record.state_text}{because}"),
            ("backend", record.backend),
            ("blocks", record.blocks_text()),
            ("trials", f"{count}, not judged" if is_imported(record) else valid),
            ("folder", str(self.path)),
        ]

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.record.run_id

    @property
    def problems(self) -> list[str]:
        """A text for every damaged trial; these are left out of every table."""
        _ = self._trials
        return [*self._damaged.values()]

    def trials(self) -> pd.DataFrame:
        """Return one row per committed trial in the order they ran, with ``superseded``.

        ``reasons`` holds a list of :class:`Reason` in each row, ``warnings`` one of
        :class:`Remark`.
        """
        trials = self._trials
        if not self._damaged:
            return trials.copy()
        return trials[~trials["trial_id"].isin(self._damaged)].reset_index(drop=True)

    def current_trials(self) -> pd.DataFrame:
        """Return the trials of every state that were not superseded."""
        trials = self.trials()
        return trials[~trials["superseded"].astype(bool)]

    def valid_trials(self) -> pd.DataFrame:
        """Return the trials that may enter a comparison: valid and not superseded."""
        trials = self.current_trials()
        return trials[trials["state"] == "valid"].reset_index(drop=True)

    def valid_counts(self) -> dict[str, int]:
        """Return the number of valid trials of every treatment, zeros included."""
        counts = self.valid_trials()["treatment"].value_counts()
        return {item.name: int(counts.get(item.name, 0)) for item in self.record.treatments}

    def n_text(self) -> str:
        """Return how many valid trials the treatments have.

        A few treatments that differ are named; if many differ, they are counted.
        """
        counts = self.valid_counts()
        having = Counter(counts.values())
        usual, alike = max(having.items(), key=lambda item: (item[1], item[0]))
        if len(counts) - alike > MOST_NAMED:
            fewer = [f"{n} for {having[n]}" for n in sorted(having, reverse=True) if n != usual]
            most = counted(having[usual], "treatment")
            return ", ".join([f"n = {usual} valid trials for {most}", *fewer])
        labels = self.record.labels
        others = [f"{count} of {labels[name]}" for name, count in counts.items() if count != usual]
        exceptions = f" (except {'; '.join(others)})" if others else ""
        return f"n = {usual} valid trials per treatment{exceptions}"

    def trials_of(self, response: str) -> pd.DataFrame:
        """Return the trials whose value of a response may enter a comparison.

        They are the valid ones. A trial that is invalid because its requests failed, and for no
        other reason, tells the share of failures all the same; one whose client was late tells what
        the service counts itself.
        """
        base, _ = split_request(response)
        harmless = {TOO_MANY_FAILED} if base == FAILURES else set[str]()
        if COUNTED_INSIDE.fullmatch(base):
            harmless = {CLIENT_LATE}
        trials = self.current_trials()
        codes = [{reason.code for reason in reasons} for reasons in trials["reasons"]]
        may_enter = np.array([bool(one) and one <= harmless for one in codes], dtype=bool)
        return trials[may_enter | (trials["state"] == "valid")].reset_index(drop=True)

    def compared_trials(self, response: str = "") -> pd.DataFrame:
        """Return the trials for comparisons of a response, or ``not judged`` imported ones."""
        if not is_imported(self.record):
            return self.trials_of(response)
        trials = self.trials()
        return trials[trials["state"] == NOT_JUDGED].reset_index(drop=True)

    def requests(
        self, stage: str | None = "measure", trial_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the requests of a stage (None: of all), with trial_id, treatment and block.

        By default they are of :meth:`valid_trials`; other trials must be named.

        RowsMissing where the recording lacks them; see :attr:`missing`. RecordingError where a
        trial id is not in the run.
        """
        rows = self.table("requests", trial_ids)
        return rows if stage is None else rows[rows["stage"] == stage].reset_index(drop=True)

    def table(self, name: str, trial_ids: Sequence[str] | None = None) -> pd.DataFrame:
        """Return a table of the trials, joined, with trial_id, treatment and block.

        The lab's own tables are requests, samples, waits, messages, calls, progress and chunks; the
        record (``tables``) declares others. The result is empty where no trial has the table. See
        :meth:`requests` for ``trial_ids``.

        RecordingError where the run declares no table of that name, or a trial id is not in the
        run.
        """
        known = schemas(self.record.tables)
        if name not in known:
            raise RecordingError(
                f"run {self.run_id} has no table '{name}'{did_you_mean(name, known)}; there are: "
                f"{', '.join(known)}"
            )
        return self._joined(name, trial_ids)

    @cached_property
    def missing(self) -> list[str]:
        """The tables that lack rows which the trials counted: a copy may leave the large ones out.

        A trial has tables of streams only where something came, and imported results have none.
        """
        if is_imported(self.record):
            return []
        trials = self.trials()
        folders = [self.path / "trials" / str(name) for name in trials["trial_id"]]
        with_requests = [
            folder for folder, n in zip(folders, trials["requests"], strict=True) if n > 0
        ]
        folders_by_kind = {"requests": with_requests, **dict.fromkeys(STREAMED, folders)}
        return [
            kind
            for kind, expected in folders_by_kind.items()
            if any(has_rows(folder, kind) is False for folder in expected)
        ]

    @cached_property
    def blocks_so_far(self) -> int:
        """The number of blocks; up to the last whole one while blocks are still added."""
        rule = self.record.until_decided
        if rule is None or rule.ended:
            return self.record.blocks
        measured = self.current_trials().groupby("block")["position"].nunique()
        whole = measured[measured == len(self.record.treatments)].index
        return int(whole.max()) + 1 if len(whole) else 0

    @property
    def judged_blocks(self) -> int:
        """The number of blocks, from the first on, that comparisons use.

        It is all, or those of the last due look where blocks are added until all is decided.
        """
        rule = self.record.until_decided
        return rule.judged_blocks(self.blocks_so_far) if rule else self.record.blocks

    @cached_property
    def _trials(self) -> pd.DataFrame:
        tables, schema = [TRIAL.empty_table()], TRIAL
        for folder in sorted(self.path.glob("trials/b*")):
            try:
                row = read_row(folder, self.record)
                # A whole number is unknown (NaN) in some trials.
                schema = pa.unify_schemas([schema, row.schema], promote_options="permissive")
                tables.append(row)
            except (RecordingError, pa.ArrowException) as error:
                self._skip(folder.name, error)
        joined = pa.concat_tables(tables, promote_options="permissive")
        frame: pd.DataFrame = joined.to_pandas()
        for name in KINDS_OF_REMARK:
            frame[name] = frame[name].map(partial(remarks, name))
        frame["superseded"] = frame["trial_id"].isin(self.record.superseded).astype(bool)
        return frame.sort_values(["block", "position", "attempt"], ignore_index=True)

    def _skip(self, trial: str, error: Exception) -> None:
        self._damaged[trial] = f"trial {trial} is damaged and left out: {error}"

    def _joined(self, kind: str, trial_ids: Sequence[str] | None) -> pd.DataFrame:
        if kind in self.missing:
            raise RowsMissing(
                f"run {self.run_id}: this recording lacks the rows of {' and '.join(self.missing)}"
            )
        of_trials = self.trials().set_index("trial_id", drop=False)[list(IDENTITY)]
        chosen = list(self.valid_trials()["trial_id"] if trial_ids is None else trial_ids)
        unknown = [name for name in chosen if name not in of_trials.index]
        if unknown:
            raise RecordingError(f"run {self.run_id} has no readable trial {', '.join(unknown)}")
        tables = {str(name): self._table(kind, str(name)) for name in chosen}
        parts = {name: part for name, part in tables.items() if part is not None and len(part)}
        if not parts:
            empty: pd.DataFrame = schemas(self.record.tables)[kind].empty_table().to_pandas()
            return empty.assign(trial_id="", treatment="", block=0)
        joined = pa.concat_tables(parts.values(), promote_options="permissive")
        kept = [name for name in joined.column_names if name not in IDENTITY]
        # A million messages have only a few different texts.
        frame: pd.DataFrame = joined.select(kept).to_pandas(
            strings_to_categorical=kind == "messages"
        )
        rows_of_trials = of_trials.loc[list(parts)]
        places = np.repeat(np.arange(len(parts)), [len(part) for part in parts.values()])
        identity = rows_of_trials.iloc[places].reset_index(drop=True)
        return pd.concat([frame, identity], axis=1)

    def _table(self, kind: str, trial: str) -> pa.Table | None:
        if (kind, trial) in self._cache:
            return self._cache[kind, trial]
        try:
            rows = read_table(self.path / "trials" / trial, kind)
        except RecordingError as error:
            self._skip(trial, error)
            return None
        if rows is not None and kind in ALWAYS:
            # Other tables may have a million rows per trial, so they are not cached.
            self._cache[kind, trial] = rows
        return rows


def once_per_record(find: Callable[[Run], Found]) -> Callable[[Run], Found]:
    """Return a function that finds something of a run once, until the run's record is replaced.

    All else of a run is a snapshot.
    """
    known: WeakKeyDictionary[Run, tuple[RunRecord, Found]] = WeakKeyDictionary()

    @wraps(find)
    def found(run: Run) -> Found:
        if run not in known or known[run][0] is not run.record:
            known[run] = run.record, find(run)
        return known[run][1]

    return found
