"""Whether figures, their tables and documents are those that the lab wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from perflab.errors import ExportRefused, ParameterError, RunNotFound
from perflab.figures.export import (
    NO_TABLE,
    ProvenanceError,
    Stamp,
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
AS_DRAWN, ONLY_EDITS, FOREIGN = "as drawn", "not edited", "not the lab's"
UNCHECKED = "not checked"
FINDINGS = (EDITED, STALE, ORPHANED)
PICTURES = (".svg", ".png", ".pdf")
# Documents that hold their figures; Word's have no place for a digest.
DOCUMENTS = (".html", ".docx")
ONLY_CHECKED = "only checked for edits"
NOT_HERE = f"run not here: {ONLY_CHECKED}"


@dataclass(frozen=True)
class Verified:
    """The state of one file; it is one of ``FINDINGS`` where something is wrong."""

    path: Path
    state: str
    reason: str = ""

    @property
    def finding(self) -> bool:
        """Whether something must be done."""
        return self.state in FINDINGS


def verify(paths: Sequence[Path]) -> list[Verified]:
    """Check every figure, its table, and every document under ``paths``.

    ParameterError where a path is not there; the message names all of them.
    """
    if missing := [str(path) for path in paths if not path.exists()]:
        way_out = "name a folder, figure, table or document"
        raise ParameterError("--verify", [f"there is no {', '.join(missing)}; {way_out}"])
    files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("*"))}
    visible = sorted(file for file in files if file.is_file() and not file.name.startswith("."))
    figures = [path for path in visible if path.suffix in PICTURES]
    texts = [path for path in visible if path.suffix == ".md"]
    documents = [_document(path) for path in visible if path.suffix in DOCUMENTS]
    pictures = [_figure(figure, _table_of(figure)) for figure in figures]
    return [*pictures, *documents, *_written(texts)]


def _origin(path: Path) -> dict[str, Any] | None:
    with suppress(ProvenanceError):
        return provenance(path)
    return None


def _table_of(figure: Path) -> Path:
    """Return the path of a figure's table, which has the name of the file or of the view."""
    beside = figure.with_suffix(".csv")
    name = str((_origin(figure) or {}).get("figure", ""))
    return beside if beside.exists() or not name else figure.with_name(f"{name}.csv")


def _document(path: Path) -> Verified:
    stamp = stamp_of(path.read_bytes(), "html") if path.suffix == ".html" else None
    if stamp is None:
        return Verified(path, UNCHECKED, "it has no digest; the same section in Markdown has one")
    return _whole_document(path, stamp)


def _whole_document(path: Path, stamp: Stamp) -> Verified:
    if stamp.whole:
        return Verified(path, ONLY_EDITS)
    return Verified(path, EDITED, "the document is not the one that was written; export it anew")


def _figure(path: Path, table: Path) -> Verified:
    content, origin = path.read_bytes(), _origin(path)
    stamp = stamp_of(content, path.suffix[1:])
    if stamp and stamp.table == NO_TABLE:
        return _whole_document(path, stamp)
    if stamp is None or origin is None:
        if stamp or origin:
            return Verified(path, EDITED, "its digest or its origin is gone; save it anew")
        if table.exists():
            why = f"it says nothing of its origin, and {table.name} is there"
            return Verified(path, EDITED, why)
        return Verified(path, FOREIGN)
    if not stamp.whole:
        return Verified(path, EDITED, "the file is not the one that was written; save it anew")
    if not table.exists():
        return Verified(path, ORPHANED, f"its table {table.name} is not beside it")
    if table_digest(table.read_bytes()) != stamp.table:
        return Verified(path, STALE, f"it was drawn from another {table.name}; save both anew")
    return _redrawn(path, origin, content)


def _redrawn(path: Path, origin: dict[str, Any], content: bytes) -> Verified:
    # The name comes from a file, so it must not lead out of the folder of runs.
    run = _opened(Path(origin["runs"][0]).name, runs_dir())
    if run is None:
        return Verified(path, ONLY_EDITS, NOT_HERE)
    view = next((view for view in views_of(run) if view.name == origin["figure"]), None)
    if view is None:
        return Verified(path, STALE, f"the run has no view '{origin['figure']}' any more")
    if run.missing and view.shown(run).empty:
        return Verified(path, ONLY_EDITS, f"{', '.join(run.missing)} not here: {ONLY_CHECKED}")
    (_, again), *_ = rendered(view, run, [path.suffix[1:]])
    if again == content:
        return Verified(path, AS_DRAWN)
    by = f"perflab {origin.get('perflab', 'unknown')}"
    return Verified(path, STALE, f"drawn anew the run gives other bytes (it was drawn by {by})")


@cache
def _opened(name: str, root: Path) -> Run | None:
    with suppress(RunNotFound):
        return open_run(name, root)
    return None


def _written(texts: Sequence[Path]) -> Iterator[Verified]:
    for text in texts:
        content = text.read_bytes().decode("utf-8", "surrogateescape")
        try:
            written = regions(content)
        except ExportRefused as error:
            yield Verified(text, EDITED, str(error))
            continue
        edited = [region.name for region in written if region.is_edited()]
        for name in edited:
            yield Verified(text, EDITED, f"region '{name}' was edited by hand; export it anew")
        if written and not edited:
            yield Verified(text, ONLY_EDITS)
