"""The saved figures of a run as they stand in a document: a link, a caption, words in its place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from perflab.figures.origin import n_text
from perflab.figures.page import page_of
from perflab.figures.tables import read_csv, reread
from perflab.recordings import Run
from perflab.reports.captions import Words, words_of
from perflab.reports.pictures import views_of


@dataclass(frozen=True)
class Figure:
    """A figure of a document; ``image`` and ``files`` are links, relative to the document."""

    name: str
    words: Words
    image: str
    files: tuple[str, ...] = ()


def figures_of(
    run: Run, saved: Sequence[Path], directory: Path, kinds: Sequence[str] = (".svg", ".png")
) -> list[Figure]:
    """Return the saved figures of a run, in the order in which they are shown.

    Parameters
    ----------
    saved : sequence of Path
        Pictures and tables; what belongs to one figure has one stem.
    directory : Path
        Where the document lies.
    kinds : sequence of str
        Which picture is shown, best first.
    """
    views = {view.name: view for view in views_of(run)}
    files: dict[str, dict[str, Path]] = {}
    for path in saved:
        files.setdefault(path.stem, {})[path.suffix] = path
    page, n = page_of(run), n_text(run)
    labels = {item.name: item.label or item.name for item in run.record.treatments}
    found = []
    for name, own in files.items():
        shown = next((own[kind] for kind in kinds if kind in own), None)
        if shown is None:
            continue
        links = tuple(_link(path, directory) for path in own.values())
        view = views.get(name)
        title = view.title if view else name
        table = _table(own.get(".csv"))
        if table is None:
            table = reread(view.shown(run)) if view else pd.DataFrame()
        why = view.empty(page) if view else ""
        words = words_of(title, table, labels, n, why)
        found.append(Figure(name, words, _link(shown, directory), links))
    return found


def _link(path: Path, directory: Path) -> str:
    return Path(os.path.relpath(path, directory)).as_posix()


def _table(path: Path | None) -> pd.DataFrame | None:
    if path is None or not path.is_file():
        return None
    return read_csv(path.read_text(encoding="utf-8"))
