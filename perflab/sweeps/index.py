"""The index of a sweep: one HTML page with the result of every cell.

It opens from a disk, without a server or a script.
"""

from __future__ import annotations

import html
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from perflab.host.files import replace_file
from perflab.paths import runs_dir
from perflab.sweeps.cells import Cell, Sweep
from perflab.sweeps.journal import Attempt, AttemptEnded, CellState, Journal

PAGE = "index.html"
THUMBNAILS = 3
HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2em; color: #222; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: .5em .8em; }}
img {{ width: 15em; margin: 0 .4em .4em 0; }}
</style></head>
<body><h1>{title}</h1>
<p>{all}. Each verdict is of one run by itself, and p is adjusted within that run alone: among many
cells some look large by chance.</p>
"""


def write_index(folder: Path, sweep: Sweep, journal: Journal) -> None:
    """Replace the page; its links are relative, so that the folder can be moved."""
    states = Counter(journal.cell(cell.id).state for cell in sweep.cells)
    listed = ", ".join(f"{count} {state}" for state, count in states.items())
    counts = f"{len(sweep.cells)} cells: {listed}"
    table = pd.DataFrame([_row(cell, journal.cell(cell.id), folder) for cell in sweep.cells])
    with pd.option_context("display.max_colwidth", None):
        body = table.to_html(index=False, escape=False)
    head = HEAD.format(title=_text(sweep.title), all=counts)
    replace_file(folder / PAGE, f"{head}{body}</body></html>\n".encode())


def _row(cell: Cell, state: CellState, folder: Path) -> dict[str, str]:
    ended = state.attempts[-1].ended if state.attempts else None
    places = _places(state, ended).items()
    links = ", ".join(f'<a href="{_address(at, folder)}">{word}</a>' for word, at in places if at)
    trials = (
        f"{ended.valid_trials} of {ended.trials} trials valid" if ended and ended.trials else ""
    )
    return {
        "cell": f"<b>{_text(cell.label)}</b><br><code>{cell.id}</code><br>{links}",
        "state": f"{state.state}{_listed(map(_attempt_text, state.attempts))}{trials}",
        "verdicts": _verdicts(ended) if ended else "",
        "figures": _thumbnails(ended.figures, folder) if ended else "",
    }


def _places(state: CellState, ended: AttemptEnded | None) -> dict[str, str]:
    """Return the paths of the notebook, the run and the log of a cell; "" where there is none."""
    # A run of another host can be read only after it was copied to the store.
    is_here = state.run_id and not state.attempts[-1].begun.host
    run = str(runs_dir() / state.run_id) if is_here else ""
    if ended is None:
        return {"run": run}
    return {"notebook": ended.notebook, "run": ended.stored or run, "log": ended.log}


def _attempt_text(attempt: Attempt) -> str:
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
    return _listed(_text(f"{claim}: {verdict} {size}") for claim, verdict, size in ended.verdicts)


def _thumbnails(figures: Sequence[str], folder: Path) -> str:
    # A browser cannot show figures of a store; the figure of the effect comes first.
    files = [figure for figure in figures if "://" not in figure]
    files.sort(key=lambda figure: (Path(figure).stem != "effect", figure))
    places = [_address(figure, folder) for figure in files[:THUMBNAILS]]
    return "".join(f'<a href="{at}"><img loading="lazy" src="{at}"></a>' for at in places)


def _listed(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _address(place: str, folder: Path) -> str:
    return _text(place if "://" in place else quote(os.path.relpath(place, folder)))


def _text(value: str) -> str:
    return html.escape(value)
