"""The index of a sweep: what became of every cell, as a page.

It is one file of HTML that opens from a disk, without a server or a script.
"""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from perflab.durable import replace_file
from perflab.paths import runs_dir
from perflab.sweeps.cells import Cell, Sweep
from perflab.sweeps.journal import Attempt, Journal

PAGE = "index.html"
THUMBNAILS = 3
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em; color: #222; background: #fff; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .5em .8em; border-bottom: 1px solid #ccc; }
img { width: 15em; border: 1px solid #ddd; margin: 0 .4em .4em 0; background: #fff; }
ul { margin: 0; padding-left: 1.2em; } code { overflow-wrap: anywhere; }
.done { color: #1d6b3c; } .failed { color: #a3221a; }
.waiting, .broken, .interrupted { color: #555; }
"""


def write_index(folder: Path, sweep: Sweep, journal: Journal) -> None:
    """Write the page; it is the old one or the new one, whenever it is looked at."""
    rows = [_row(cell, journal) for cell in sweep.cells]
    replace_file(folder / PAGE, _page(sweep.title, rows, folder).encode())


def _row(cell: Cell, journal: Journal) -> dict[str, Any]:
    known = journal.cell(cell.id)
    last = known.attempts[-1] if known.attempts else None
    ended = last.ended if last else None
    own = ended.model_dump(mode="json") if ended else {}
    host = last.begun.host if last else ""
    # A run of another host can be read only once it was copied to the store.
    run = str(runs_dir() / known.run_id) if known.run_id and not host else ""
    return {
        "cell": cell.id,
        "label": cell.label,
        "parameters": dict(cell.parameters),
        "state": known.state,
        "host": host,
        "run": own.get("stored") or run,
        "executed": own.get("notebook", ""),
        "figures": own.get("figures", []),
        "log": own.get("log", ""),
        "kind": own.get("kind", ""),
        "error": own.get("error", ""),
        "trials": own.get("trials", 0),
        "valid_trials": own.get("valid_trials", 0),
        "verdicts": own.get("verdicts", []),
        "history": [_told(attempt) for attempt in known.attempts],
    }


def _told(attempt: Attempt) -> str:
    words = [f"attempt {attempt.begun.attempt}: {attempt.outcome}"]
    if attempt.ended and attempt.ended.kind:
        words.append(f"({attempt.ended.kind})")
    if attempt.begun.host:
        words.append(f"on {attempt.begun.host}")
    if attempt.run_id:
        words.append(f"run {attempt.run_id}")
    return " ".join(words)


def _page(title: str, rows: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """Return the page that lies in ``folder``; its links are relative, so that all can move."""
    states = [str(row["state"]) for row in rows]
    told = ", ".join(f"{states.count(each)} {each}" for each in dict.fromkeys(states))
    body = "\n".join(_line(row, folder) for row in rows)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}'
        f"</title><style>{STYLE}</style></head>\n<body><h1>{_text(title)}</h1>\n"
        f"<p>{len(rows)} cells: {_text(told)}. "
        "Each verdict is of one run by itself, and p is adjusted within that run alone: among many "
        "cells some look large by chance.</p>\n<table>\n<thead><tr><th>cell</th>"
        f"<th>state</th><th>verdicts</th><th>figures</th></tr></thead>\n<tbody>\n{body}\n"
        "</tbody></table></body></html>\n"
    )


def _line(row: Mapping[str, Any], folder: Path) -> str:
    state = _text(row["state"])
    links = [
        f'<a href="{_address(row[name], folder)}">{words}</a>'
        for words, name in (("notebook", "executed"), ("run", "run"), ("log", "log"))
        if row[name]
    ]
    asked = "<br>".join(_text(f"{name} = {each}") for name, each in row["parameters"].items())
    host = f"<br>on {_text(row['host'])}" if row["host"] else ""
    valid = f"<br>{row['valid_trials']} of {row['trials']} trials valid" if row["trials"] else ""
    history = _listed(map(_text, row["history"])) if len(row["history"]) > 1 else ""
    cells = (
        f"<b>{_text(row['label'])}</b><br><code>{_text(row['cell'])}</code>"
        f"<details><summary>parameters</summary>{asked}</details>{', '.join(links)}",
        f'<span class="{state}">{state}</span>{history}{host}{valid}',
        _verdicts(row),
        _thumbnails(row["figures"], folder),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _verdicts(row: Mapping[str, Any]) -> str:
    if row["error"]:
        return _text(f"{row['kind']}: {row['error']}")
    return _listed(
        f"{_text(claim)}: <b>{_text(verdict)}</b> {_text(measured)}"
        for claim, verdict, measured in row["verdicts"]
    )


def _thumbnails(figures: Sequence[str], folder: Path) -> str:
    # No browser shows what lies behind another address; the effect comes first.
    files = sorted((each for each in figures if "://" not in each), key=_place)
    return "".join(
        f'<a href="{_address(each, folder)}"><img loading="lazy" alt="{_text(Path(each).stem)}" '
        f'src="{_address(each, folder)}"></a>'
        for each in files[:THUMBNAILS]
    )


def _place(figure: str) -> tuple[bool, str]:
    return Path(figure).stem != "effect", figure


def _listed(items: Any) -> str:
    listed = "".join(f"<li>{each}</li>" for each in items)
    return f"<ul>{listed}</ul>" if listed else ""


def _address(place: str, folder: Path) -> str:
    return _text(place if "://" in place else quote(os.path.relpath(place, folder)))


def _text(value: object) -> str:
    return html.escape(str(value))
