"""The index of a sweep: what became of every cell, as a table and as a page."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd

from perflab.durable import replace_file
from perflab.paths import runs_dir
from perflab.sweeps.cells import Cell, Sweep
from perflab.sweeps.journal import AttemptEnded, CellState, Journal
from perflab.sweeps.page import page_of

TABLE = "index.parquet"
PAGE = "index.html"
COLUMNS = {
    "cell": "string", "notebook": "string", "label": "string", "parameters": "string",
    "state": "string", "attempts": "int64", "host": "string", "run_id": "string", "run": "string",
    "executed": "string", "figures": "string", "log": "string", "kind": "string",
    "error": "string", "seconds": "float64", "trials": "int64", "valid_trials": "int64",
    "verdicts": "string", "began_at": "string", "ended_at": "string",
}  # fmt: skip


def rows(sweep: Sweep, journal: Journal) -> list[dict[str, Any]]:
    """Return a row per cell, in the order of the file."""
    return [_row(cell, journal) for cell in sweep.cells]


def table(sweep: Sweep, journal: Journal) -> pd.DataFrame:
    """Return the index: a row per cell; parameters, figures and verdicts are JSON."""
    plain = [
        {
            name: json.dumps(row[name]) if isinstance(row[name], (list, dict)) else row[name]
            for name in COLUMNS
        }
        for row in rows(sweep, journal)
    ]
    return pd.DataFrame(plain, columns=list(COLUMNS)).astype(COLUMNS)


def write_index(folder: Path, sweep: Sweep, journal: Journal) -> None:
    """Write table and page; each is the old one or the new one, whenever it is looked at."""
    content = io.BytesIO()
    table(sweep, journal).to_parquet(content, index=False)
    replace_file(folder / TABLE, content.getvalue())
    replace_file(folder / PAGE, page_of(sweep.title, rows(sweep, journal), folder).encode())


def _row(cell: Cell, journal: Journal) -> dict[str, Any]:
    known = journal.cell(cell.id)
    last = known.attempts[-1] if known.attempts else None
    ended = last.ended if last else None
    return {
        "cell": cell.id,
        "notebook": cell.notebook,
        "label": cell.label,
        "parameters": dict(cell.parameters),
        "state": known.state,
        "attempts": len(known.attempts),
        "run_id": known.run_id,
        "host": last.begun.host if last else "",
        "run": _place_of_run(known, ended),
        "executed": ended.notebook if ended else "",
        "figures": list(ended.figures) if ended else [],
        "section": str(Path(ended.notebook).parent) if ended and ended.done else "",
        "log": ended.log if ended else "",
        "kind": ended.kind if ended else "",
        "error": ended.error if ended else "",
        "seconds": ended.seconds if ended else 0.0,
        "trials": ended.trials if ended else 0,
        "valid_trials": ended.valid_trials if ended else 0,
        "verdicts": [list(each) for each in ended.verdicts] if ended else [],
        "began_at": last.begun.at if last else "",
        "ended_at": ended.at if ended else "",
        "history": [
            (
                attempt.begun.attempt,
                attempt.outcome,
                f"({attempt.ended.kind})" if attempt.ended and attempt.ended.kind else "",
                attempt.begun.host and f"on {attempt.begun.host}",
                attempt.run_id and f"run {attempt.run_id}",
            )
            for attempt in known.attempts
        ],
    }


def _place_of_run(known: CellState, ended: AttemptEnded | None) -> str:
    """Return where the run can be read; a run of another host only once it was published."""
    if ended and ended.published:
        return ended.published
    elsewhere = bool(known.attempts) and known.attempts[-1].begun.host
    return "" if elsewhere or not known.run_id else str(runs_dir() / known.run_id)
