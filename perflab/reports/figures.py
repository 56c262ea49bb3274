"""The pictures of a run: the views of its system, drawn and saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from perflab import systems
from perflab.errors import ExportRefused, ParameterError, RunNotFound
from perflab.figures import GENERAL_VIEWS, PROFILE, LabFigure, View, draw_view, save_view
from perflab.figures.export import (
    ProvenanceError,
    provenance,
    rendered,
    stamp_of,
    table_digest,
    write_whole,
)
from perflab.parameters import unknown
from perflab.paths import runs_dir
from perflab.recordings import Run, open_run
from perflab.reports.regions import regions
from perflab.reports.rules import system_of


def views_of(run: Run) -> list[View]:
    """Return the views that suit a run, in the order in which they are shown.

    The run's system declares them. A run of a system that is not installed has the general views
    for which it has data.
    """
    declared = _declared(run)
    suiting = [view for view in declared or GENERAL_VIEWS if view.suits(run)]
    return suiting if declared else [view for view in suiting if not view.shown(run).empty]


def declared_views(system: str) -> dict[str, View]:
    """Return the views that a system declares, by name."""
    return {view.name: view for view in _declared_by(system)}


def _declared(run: Run) -> Sequence[View]:
    """Return the VIEWS of the run's system; none where it is not installed or has none."""
    return _declared_by(system_of(run))


def _declared_by(system: str) -> Sequence[View]:
    if system not in systems.systems():
        return ()
    return systems.declared(system, "views", "VIEWS", View, ())


def draw(run: Run, name: str) -> LabFigure:
    """Draw one view of a run, with the same digits as its file.

    A view that does not suit the run says that there is nothing to show.

    ParameterError where the run's system has no view of that name; the message proposes the
    nearest.
    """
    views = {view.name: view for view in _declared(run) or GENERAL_VIEWS}
    if problems := unknown("view", [name], views):
        raise ParameterError("view", problems)
    return draw_view(views[name], run)


def save_all(run: Run, directory: Path, names: Sequence[str] = ()) -> list[Path]:
    """Save the named views of a run (no name: all that suit it), each with its table as CSV.

    Return the paths of SVG, PNG and CSV of each figure, in this order. The figure of a profile also
    has a file with a line for each call chain and its samples, below the name of its treatment:
    the "folded" form, which https://www.speedscope.app and flamegraph.pl open.
    """
    chosen = [view for view in views_of(run) if not names or view.name in names]
    paths = [path for view in chosen for path in save_view(view, run, directory)]
    if PROFILE not in chosen:
        return paths
    calls = run.table("calls").groupby(["treatment", "chain"])["samples"].sum().reset_index()
    lines = [
        f"{row['treatment']};{row['chain']} {row['samples']}\n" for row in calls.to_dict("records")
    ]
    chains = directory / f"{PROFILE.name}.txt"
    write_whole(chains, "".join(lines).encode())
    return [*paths, chains]


EDITED, STALE, ORPHANED = "edited", "stale", "orphaned"
WHOLE, ONLY_EDITS, FOREIGN = "as drawn", "not edited", "not the lab's"
FINDINGS = (EDITED, STALE, ORPHANED)
PICTURES = (".svg", ".png", ".pdf")
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
    return [*(_figure(figure, _table_of(figure)) for figure in figures), *_edited(texts)]


def _origin(path: Path) -> dict[str, Any] | None:
    with suppress(ProvenanceError):
        return provenance(path)
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
        return Verified(path, WHOLE)
    by = f"perflab {origin.get('perflab', 'unknown')}"
    return Verified(path, STALE, f"drawn anew the run gives other bytes (it was drawn by {by})")


@cache
def _opened(name: str, root: Path) -> Run | None:
    with suppress(RunNotFound):
        return open_run(name, root)
    return None


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
