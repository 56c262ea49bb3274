"""Figures and marked regions, held against what the lab wrote: edited, stale, orphaned.

Edited: the digest in the file is no longer that of the file, or that of a region's begin mark no
longer that of what stands in the region. Stale: the run is here, and drawing it again gives
something else; or the table beside is not the one that was drawn. Orphaned: the table is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from perflab.errors import ExportRefused, PerflabError
from perflab.figures.export import (
    NO_TABLE,
    ProvenanceError,
    provenance,
    rendered,
    stamp_of,
    table_digest,
)
from perflab.paths import runs_dir
from perflab.recordings import Run, open_run
from perflab.reports.figures import views_of
from perflab.reports.regions import regions

EDITED, STALE, ORPHANED = "edited", "stale", "orphaned"
WHOLE, ONLY_EDITS, FOREIGN = "as drawn", "not edited", "not the lab's"
FINDINGS = (EDITED, STALE, ORPHANED)
PICTURES = (".svg", ".png", ".pdf")
NOT_HERE = "run not here: only checked for edits"


class NothingToVerify(PerflabError):
    """A path that was to be verified does not exist."""


@dataclass(frozen=True)
class Verified:
    """What was found of one file; ``state`` is one of ``FINDINGS`` where it is not in order."""

    path: Path
    state: str
    told: str = ""

    @property
    def finding(self) -> bool:
        """Whether something must be done."""
        return self.state in FINDINGS


def verify(paths: Sequence[Path]) -> list[Verified]:
    """Check every figure, its table, and every document under ``paths``.

    Raises
    ------
    NothingToVerify
        A path is not there; the message names all of them.
    """
    files = _files(paths)
    figures = [path for path in files if path.suffix in PICTURES]
    texts = [path for path in files if path.suffix == ".md"]
    return [*(_figure(figure, _table_of(figure)) for figure in figures), *_edited(texts)]


def _files(paths: Sequence[Path]) -> list[Path]:
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise NothingToVerify(
            f"there is no {', '.join(missing)}; name a folder, figure, table or document"
        )
    every = {each for path in paths for each in ([path] if path.is_file() else path.rglob("*"))}
    return sorted(each for each in every if each.is_file() and not each.name.startswith("."))


def _origin(path: Path) -> dict[str, Any] | None:
    try:
        return provenance(path)
    except ProvenanceError:
        return None


def _table_of(figure: Path) -> Path:
    """Return where a figure's table should lie: called as the file, or as the view."""
    beside = figure.with_suffix(".csv")
    name = str((_origin(figure) or {}).get("figure", ""))
    return beside if beside.exists() or not name else figure.with_name(f"{name}.csv")


def _figure(path: Path, table: Path) -> Verified:
    content, origin = path.read_bytes(), _origin(path)
    stamp = stamp_of(content, path.suffix[1:])
    if stamp is None or origin is None:
        return _without_digest(path, table, stamped_once=stamp is not None or origin is not None)
    if not stamp.whole:
        return Verified(path, EDITED, "the file is not the one that was written; save it anew")
    if stamp.table != NO_TABLE and not table.exists():
        return Verified(path, ORPHANED, f"its table {table.name} is not beside it")
    if stamp.table != NO_TABLE and table_digest(table.read_bytes()) != stamp.table:
        return Verified(path, STALE, f"it was drawn from another {table.name}; save both anew")
    return _redrawn(path, origin, content)


def _without_digest(path: Path, table: Path, stamped_once: bool) -> Verified:
    if stamped_once:
        return Verified(path, EDITED, "its digest or its origin is gone or damaged; save it anew")
    if table.exists():
        return Verified(path, EDITED, f"it says nothing of its origin, and {table.name} is there")
    return Verified(path, FOREIGN)


def _redrawn(path: Path, origin: dict[str, Any], content: bytes) -> Verified:
    names = [str(name) for name in origin["runs"]]
    if len(names) != 1:
        return Verified(path, ONLY_EDITS, f"of {len(names)} runs: only checked for edits")
    # A name comes from a file: it may lead nowhere else.
    run = _opened(names[0], runs_dir()) if Path(names[0]).name == names[0] else None
    if run is None:
        return Verified(path, ONLY_EDITS, NOT_HERE)
    view = next((view for view in views_of(run) if view.name == origin["figure"]), None)
    if view is None:
        return Verified(path, STALE, f"the run has no view '{origin['figure']}' any more")
    (_, again), *_ = rendered(view, run, [path.suffix[1:]])
    if again == content:
        return Verified(path, WHOLE)
    by = f"perflab {origin.get('perflab', 'unknown')}"
    return Verified(path, STALE, f"drawn anew the run gives other bytes (it was drawn by {by})")


@cache
def _opened(name: str, root: Path) -> Run | None:
    return open_run(name, root) if (root / name / "run.json").exists() else None


def _edited(texts: Sequence[Path]) -> Iterator[Verified]:
    for text in texts:
        content = text.read_bytes().decode("utf-8", "surrogateescape")
        try:
            edited = [each.name for each in regions(content) if each.is_edited()]
        except ExportRefused as error:
            yield Verified(text, EDITED, str(error))
            continue
        for name in edited:
            yield Verified(text, EDITED, f"region '{name}' was edited by hand; export it anew")
