"""The saved figures of a run as they stand in a document: a link, a caption, words in its place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perflab.figures.origin import n_text
from perflab.recordings import Run
from perflab.reports.pictures import views_of


@dataclass(frozen=True)
class Figure:
    """A figure of a document; ``image`` and ``files`` are links, relative to the document.

    The numbers that it shows are in the table beside it. ``n`` says of how many trials it is.
    """

    title: str
    n: str
    image: str
    files: tuple[str, ...] = ()

    @property
    def caption(self) -> str:
        """What stands below it."""
        return f"{self.title[:1].upper()}{self.title[1:]}. {self.n}."


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
    titles = {view.name: view.title for view in views_of(run)}
    files: dict[str, dict[str, Path]] = {}
    for path in saved:
        files.setdefault(path.stem, {})[path.suffix] = path
    n, found = n_text(run), []
    for name, own in files.items():
        shown = next((own[kind] for kind in kinds if kind in own), None)
        if shown is None:
            continue
        links = tuple(_link(path, directory) for path in own.values())
        found.append(Figure(titles.get(name, name), n, _link(shown, directory), links))
    return found


def _link(path: Path, directory: Path) -> str:
    return Path(os.path.relpath(path, directory)).as_posix()
