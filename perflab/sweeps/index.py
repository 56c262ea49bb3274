"""The index of a sweep: what became of every cell, as a page.

It is one file of HTML that opens from a disk, without a server or a script.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from perflab.durable import replace_file
from perflab.paths import runs_dir
from perflab.sweeps.cells import Cell, Sweep
from perflab.sweeps.journal import Attempt, AttemptEnded, CellState, Journal

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
    """Write the page; it is the old one or the new one, whenever it is looked at.

    Its links are relative to the folder that it lies in, so that all can move.
    """
    states = [journal.cell(cell.id).state for cell in sweep.cells]
    told = ", ".join(f"{states.count(each)} {each}" for each in dict.fromkeys(states))
    body = "\n".join(_row(cell, journal.cell(cell.id), folder) for cell in sweep.cells)
    title = _text(sweep.title)
    page = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}'
        f"</title><style>{STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        f"<p>{len(states)} cells: {told}. "
        "Each verdict is of one run by itself, and p is adjusted within that run alone: among many "
        "cells some look large by chance.</p>\n<table>\n<thead><tr><th>cell</th>"
        f"<th>state</th><th>verdicts</th><th>figures</th></tr></thead>\n<tbody>\n{body}\n"
        "</tbody></table></body></html>\n"
    )
    replace_file(folder / PAGE, page.encode())


def _row(cell: Cell, known: CellState, folder: Path) -> str:
    last = known.attempts[-1] if known.attempts else None
    ended = last.ended if last else None
    # A run of another host can be read only once it was copied to the store.
    here = known.run_id and not (last and last.begun.host)
    run = str(runs_dir() / known.run_id) if here else ""
    places = {"run": run}
    if ended:
        places = {"notebook": ended.notebook, "run": ended.stored or run, "log": ended.log}
    links = ", ".join(
        f'<a href="{_address(place, folder)}">{words}</a>'
        for words, place in places.items()
        if place
    )
    asked = "<br>".join(_text(f"{name} = {each}") for name, each in cell.parameters.items())
    valid = f"{ended.valid_trials} of {ended.trials} trials valid" if ended and ended.trials else ""
    columns = (
        f"<b>{_text(cell.label)}</b><br><code>{_text(cell.id)}</code>"
        f"<details><summary>parameters</summary>{asked}</details>{links}",
        f'<span class="{known.state}">{known.state}</span>{_listed(map(_told, known.attempts))}'
        f"{valid}",
        _verdicts(ended) if ended else "",
        _thumbnails(ended.figures, folder) if ended else "",
    )
    return "<tr>" + "".join(f"<td>{column}</td>" for column in columns) + "</tr>"


def _told(attempt: Attempt) -> str:
    words = [f"attempt {attempt.begun.attempt}: {attempt.outcome}"]
    if attempt.ended and attempt.ended.kind:
        words.append(f"({attempt.ended.kind})")
    if attempt.begun.host:
        words.append(f"on {attempt.begun.host}")
    if attempt.run_id:
        words.append(f"run {attempt.run_id}")
    return _text(" ".join(words))


def _verdicts(ended: AttemptEnded) -> str:
    if ended.error:
        return _text(f"{ended.kind}: {ended.error}")
    return _listed(
        f"{_text(claim)}: <b>{_text(verdict)}</b> {_text(measured)}"
        for claim, verdict, measured in ended.verdicts
    )


def _thumbnails(figures: Sequence[str], folder: Path) -> str:
    # No browser shows what lies behind another address; the effect comes first.
    files = [each for each in figures if "://" not in each]
    files.sort(key=lambda each: (Path(each).stem != "effect", each))
    return "".join(
        f'<a href="{_address(each, folder)}"><img loading="lazy" alt="{_text(Path(each).stem)}" '
        f'src="{_address(each, folder)}"></a>'
        for each in files[:THUMBNAILS]
    )


def _listed(items: Iterable[str]) -> str:
    listed = "".join(f"<li>{each}</li>" for each in items)
    return f"<ul>{listed}</ul>" if listed else ""


def _address(place: str, folder: Path) -> str:
    return _text(place if "://" in place else quote(os.path.relpath(place, folder)))


def _text(value: object) -> str:
    return html.escape(str(value))
