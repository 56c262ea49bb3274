"""The trials of a run as rows that stand beside those of any other run."""

from __future__ import annotations

import pyarrow as pa

from perflab.recordings.many import Rows
from perflab.recordings.many_index import fingerprint
from perflab.recordings.reader import Run
from perflab.recordings.tables import KINDS_OF_REMARK, TRIAL


def trials_as_rows(run: Run) -> pa.Table:
    """Return a row per committed trial: all of :meth:`Run.trials` that is a number or a text.

    ``reasons`` and ``warnings`` are texts, joined by semicolons.
    """
    trials = run.trials()
    for name in KINDS_OF_REMARK:
        trials[name] = ["; ".join(each.text for each in remarks) for remarks in trials[name]]
    table = pa.Table.from_pandas(trials, preserve_index=False).replace_schema_metadata(None)
    return table.select([field.name for field in table.schema if not pa.types.is_list(field.type)])


_COLUMNS = pa.schema(
    [
        *(each for each in TRIAL if not pa.types.is_list(each.type)),
        *((name, pa.string()) for name in KINDS_OF_REMARK),
        ("superseded", pa.bool_()),
    ]
)


def trials_kept() -> Rows:
    """Return what is kept of every run's trials."""
    return Rows("trials", trials_as_rows, _COLUMNS, fingerprint("recordings"))
