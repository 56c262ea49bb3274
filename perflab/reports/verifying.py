"""Checks figures and marked regions against what the lab wrote: edited, stale or orphaned.

Edited: a file differs from the digest in it, or a region from the digest in its begin mark. Stale:
the run is here and drawing it again gives other bytes, or the table beside the figure is another.
Orphaned: the table is gone.
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
    files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("*"))}
    return sorted(file for file in files if file.is_file() and not file.name.startswith("."))


def _origin(path: Path) -> dict[str, Any] | None:
    try:
        return provenance(path)
    except ProvenanceError:
        return None


def _table_of(figure: Path) -> Path:
    """Return the path of a figure's table, which has the name of the file or of the view."""
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
    # The name comes from a file, so it must not lead out of the folder of runs.
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
            edited = [region.name for region in regions(content) if region.is_edited()]
        except ExportRefused as error:
            yield Verified(text, EDITED, str(error))
            continue
        for name in edited:
            yield Verified(text, EDITED, f"region '{name}' was edited by hand; export it anew")
