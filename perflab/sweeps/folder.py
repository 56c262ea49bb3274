"""The folder of a sweep: its journal, its lock, a copy of its file, and the output of cells."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from perflab.errors import HostBusy, ParameterError, ResumeRefused
from perflab.host import facts
from perflab.host.facts import LENGTH, sources
from perflab.host.files import remove_broken_off, replace_file, whole_folder, write_file
from perflab.paths import notebook_file, runs_dir, sweeps_dir
from perflab.recordings.sameness import differences
from perflab.sweeps.cells import Cell, Sweep, systems_of
from perflab.sweeps.journal import Attempt, AttemptEnded, CellState, Journal, SessionBegun

COPY = "sweep.yaml"
LOCK = "lock"
# Making a sweep's folder takes milliseconds, so that an older half one was broken off.
LATELY_S = 60.0


def new_folder(sweep: Sweep) -> Path:
    """Make the folder of a new sweep: ``<UTC time>-<name of the file>-<id>``."""
    began = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    folder = sweeps_dir() / f"{began}-{sweep.name}-{secrets.token_hex(3)}"
    sweeps_dir().mkdir(parents=True, exist_ok=True)
    remove_broken_off(sweeps_dir(), age_s=LATELY_S)
    with whole_folder(folder) as unfinished:
        write_file(unfinished / COPY, lambda file: file.write(sweep.content))
    return folder


def newest_folder(sweep: Sweep) -> Path:
    """Return the newest folder of a sweep."""
    folders = [path.parent for path in sweeps_dir().glob(f"*/{COPY}")]
    # The sweep's name stands between time and id.
    alike = [path for path in folders if "-".join(path.name.split("-")[1:-1]) == sweep.name]
    if not alike:
        raise ParameterError(
            "--resume", [f"there is no sweep '{sweep.name}' in {sweeps_dir()}; leave --resume out"]
        )
    return max(alike)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder while the block runs; HostBusy where another process has it."""
    with (folder / LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HostBusy(
                f"sweep {folder} is being carried out already; wait for it to end"
            ) from None
        # Nobody else writes here now: a killed process left the unfinished files.
        for place in (folder, *folder.glob("cells/*")):
            remove_broken_off(place)
        yield


def session_now(sweep: Sweep, machine: Mapping[str, Any] | None = None) -> SessionBegun:
    """Return the session that begins now, on this host or another ``machine``."""
    return SessionBegun(
        cells=tuple(cell.id for cell in sweep.cells),
        sources={**sources(systems_of(sweep.cells)), **digests_of_notebooks(sweep.cells)},
        machine=dict(facts.machine() if machine is None else machine),
    )


def digests_of_notebooks(cells: Iterable[Cell]) -> dict[str, str]:
    """Return the beginning of the SHA-256 of each notebook that cells execute."""
    return {
        f"notebook {name}": hashlib.sha256(notebook_file(name).read_bytes()).hexdigest()[:LENGTH]
        for name in sorted({cell.notebook for cell in cells})
    }


def refuse_changes(journal: Journal, now: SessionBegun) -> None:
    """Refuse code or a machine that changed since the last session.

    The sweep file may change: it decides which cells there are, and finished cells stay.
    """
    if not journal.sessions:
        return
    before = journal.sessions[-1]
    # A notebook of only one of the two sessions has nothing to compare with.
    both = [name for name in now.sources if name in before.sources]
    old, new = ({name: item.sources[name] for name in both} for item in (before, now))
    problems = [
        *(f"the code: {difference}" for difference in differences(old, new)),
        *(f"the machine: {item}" for item in differences(before.machine, now.machine)),
    ]
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise ResumeRefused(
            f"{journal.path.parent}: its cells would not compare. Changed since the last session:\n"
            f"{listed}\nUndo that, or begin anew without --resume"
        )


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
    head = HEAD.format(title=escape(sweep.title), all=counts)
    replace_file(folder / PAGE, f"{head}{body}</body></html>\n".encode())


def _row(cell: Cell, state: CellState, folder: Path) -> dict[str, str]:
    ended = state.attempts[-1].ended if state.attempts else None
    places = _places(state, ended).items()
    links = ", ".join(f'<a href="{_address(at, folder)}">{word}</a>' for word, at in places if at)
    trials = (
        f"{ended.valid_trials} of {ended.trials} trials valid" if ended and ended.trials else ""
    )
    return {
        "cell": f"<b>{escape(cell.label)}</b><br><code>{cell.id}</code><br>{links}",
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
    return escape(" ".join(words))


def _verdicts(ended: AttemptEnded) -> str:
    if ended.error:
        return escape(f"{ended.kind}: {ended.error}")
    return _listed(escape(f"{claim}: {verdict} {size}") for claim, verdict, size in ended.verdicts)


def _thumbnails(figures: Sequence[str], folder: Path) -> str:
    # A browser cannot show figures of a store; the figure of the effect comes first.
    files = [figure for figure in figures if "://" not in figure]
    files.sort(key=lambda figure: (Path(figure).stem != "effect", figure))
    places = [_address(figure, folder) for figure in files[:THUMBNAILS]]
    return "".join(f'<a href="{at}"><img loading="lazy" src="{at}"></a>' for at in places)


def _listed(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _address(place: str, folder: Path) -> str:
    return escape(place if "://" in place else quote(os.path.relpath(place, folder)))
