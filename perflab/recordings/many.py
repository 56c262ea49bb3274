"""Tables of many runs at once, each worked out of a run only when the run changed.

What was worked out lies in one Parquet file beside the runs, ``.index/<name>.parquet``. It is a
cache and nothing else: every look compares it with the files of every run
(:mod:`~perflab.recordings.signatures`), and what does not fit, was worked out by other code, or
cannot be read is worked out anew. It is replaced whole, so that several processes may use it at
once: the last one's stays, and what it lacks is worked out again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from perflab.errors import RecordingError
from perflab.recordings import many_index
from perflab.recordings.many_index import FACTS, FOLDER, HAS_ROW, SIGNATURE
from perflab.recordings.reader import Run
from perflab.recordings.run_facts import RunFacts, counted_facts, record_facts
from perflab.recordings.signatures import RECORD, TRIALS, signature

Wanted = Callable[[RunFacts], bool]


@dataclass(frozen=True)
class Rows:
    """One kind of rows that are worked out of a run; ``name`` is that of the index.

    Of a run that has none ``of`` returns a table without rows. ``columns`` are those that are
    there whatever the runs hold. ``code`` is a fingerprint of all that they depend on besides the
    run.
    """

    name: str
    of: Callable[[Run], pa.Table]
    columns: pa.Schema
    code: str


@dataclass
class ManyRuns:
    """Runs and their rows. ``facts`` are of all runs that were wanted, oldest first, by folder.

    ``table`` has their rows with the column ``folder``. ``problems`` name runs that cannot be read,
    and damaged trials; neither is in any table. ``opened`` counts the runs that were read.
    """

    facts: dict[str, RunFacts] = field(default_factory=dict)
    table: pa.Table = field(default_factory=lambda: pa.table({}))
    problems: list[str] = field(default_factory=list)
    opened: int = 0


@dataclass(frozen=True)
class _Entry:
    signature: str
    facts: RunFacts
    rows: pa.Table


def _every(_: RunFacts) -> bool:
    return True


def many_runs(root: Path, rows: Rows, wanted: Wanted = _every) -> ManyRuns:
    """Return the facts and rows of the runs under ``root``.

    Parameters
    ----------
    root : Path
        The folder of runs; where it cannot be written nothing is kept, and all else is the same.
    wanted : callable
        Says by its record whether a run's rows are wanted; trials of others are not looked at.
    """
    index = _Index(root, rows)
    try:
        for folder in _folders(root):
            index.look_at(folder, wanted)
    finally:
        # Also when it is interrupted: what was worked out need not be again.
        index.keep()
    return index.found(wanted)


class _Index:
    """What is known of the runs of a folder while it is looked through."""

    def __init__(self, root: Path, rows: Rows) -> None:
        self._path = root / many_index.FOLDER_NAME / f"{rows.name}.parquet"
        self._rows = rows
        self._kept = many_index.read(self._path, rows.code)
        self._known = dict(_entries(self._kept))
        self._seen: dict[str, RunFacts] = {}
        self._new: dict[str, _Entry] = {}
        self._opened = 0

    def look_at(self, folder: Path, wanted: Wanted) -> None:
        now, name = signature(folder), folder.name
        before, facts = self._known.get(name, ("", None))
        if facts is None or not now or before != now or _lacks_rows(facts, wanted):
            facts = self._read(folder, now, wanted)
        self._seen[name] = facts

    def _read(self, folder: Path, now: str, wanted: Wanted) -> RunFacts:
        self._opened += 1
        rows = pa.table({})
        try:
            run = Run(folder)
            facts = record_facts(folder.name, run.record)
            if wanted(facts):
                facts, rows = counted_facts(run), self._rows.of(run)
        except RecordingError as error:
            facts = RunFacts(folder=folder.name, unreadable=True, problems=[str(error)])
        self._new[folder.name] = _Entry(now, facts, rows)
        return facts

    def keep(self) -> None:
        """Replace the index where it lacks something, or holds what is gone."""
        stale = set(self._known) - set(self._seen)
        fresh = [entry for entry in self._new.values() if entry.signature]
        if fresh or stale:
            with contextlib.suppress(OSError):
                many_index.write(self._path, self._joined(fresh), self._rows.code)

    def found(self, wanted: Wanted) -> ManyRuns:
        every = sorted(self._seen.values(), key=lambda facts: facts.age)
        facts = {each.folder: each for each in every if not each.unreadable and wanted(each)}
        named = [(each, text) for each in every for text in each.problems]
        return ManyRuns(
            facts=facts,
            table=self._chosen(set(facts)),
            problems=[
                text if each.unreadable else f"run {each.run_id}: {text}"
                for each, text in named
                if each.unreadable or each.folder in facts
            ],
            opened=self._opened,
        )

    def _joined(self, entries: list[_Entry]) -> pa.Table:
        """Return the rows of the index that still hold, and those of ``entries``."""
        reused = pa.array(sorted(set(self._seen) - set(self._new)), pa.string())
        kept = self._kept.filter(pc.is_in(self._kept[FOLDER], value_set=reused))
        return many_index.joined([kept, *map(_as_rows, entries)])

    def _chosen(self, folders: set[str]) -> pa.Table:
        whole = self._joined(list(self._new.values()))
        is_row = pc.is_in(whole[FOLDER], value_set=pa.array(sorted(folders), pa.string()))
        table = whole.filter(pc.and_(is_row, whole[HAS_ROW]))
        for each in self._rows.columns:
            if each.name not in table.column_names:
                table = table.append_column(each, pa.nulls(len(table), each.type))
        # What only other runs have is no column of these.
        always = {FOLDER, *self._rows.columns.names}
        own = [
            name
            for name in table.column_names
            if name in always or table[name].null_count < len(table)
        ]
        return table.select([name for name in own if name not in (SIGNATURE, FACTS, HAS_ROW)])


def _lacks_rows(facts: RunFacts, wanted: Wanted) -> bool:
    return facts.counts is None and not facts.unreadable and wanted(facts)


def _folders(root: Path) -> Iterator[Path]:
    """Yield the folders of runs, those without a record too: half of one is still to be named."""
    if root.is_dir():
        for path in sorted(root.glob("[!.]*/")):
            if (path / RECORD).exists() or (path / TRIALS).exists():
                yield path


def _entries(kept: pa.Table) -> Iterator[tuple[str, tuple[str, RunFacts]]]:
    """Yield the folder, signature and facts of each run of an index; one that is none is gone."""
    runs = kept.group_by([FOLDER, SIGNATURE, FACTS]).aggregate([])
    for folder, before, words in zip(
        *(runs[name].to_pylist() for name in (FOLDER, SIGNATURE, FACTS)), strict=True
    ):
        with contextlib.suppress(ValidationError):
            yield folder, (before, RunFacts.model_validate_json(words))


def _as_rows(entry: _Entry) -> pa.Table:
    """Return an entry as rows of the index; a run without rows still has one, to be known by."""
    rows, count = entry.rows, max(1, len(entry.rows))
    named = {FOLDER: entry.facts.folder, SIGNATURE: entry.signature}
    named[FACTS] = entry.facts.model_dump_json()
    columns = {name: pa.repeat(pa.scalar(text, pa.string()), count) for name, text in named.items()}
    columns[HAS_ROW] = pa.repeat(pa.scalar(len(rows) > 0, pa.bool_()), count)
    if len(rows):
        columns |= {name: rows[name] for name in rows.column_names}
    return pa.table(columns)
