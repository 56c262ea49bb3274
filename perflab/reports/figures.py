"""The pictures of a run: the views of its system, drawn and saved."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path

from perflab import systems
from perflab.errors import ParameterError
from perflab.figures import GENERAL_VIEWS, PROFILE, Judging, LabFigure, View, draw_view, save_view
from perflab.figures.export import FORMATS, write_whole
from perflab.instruments import py_spy
from perflab.parameters import did_you_mean
from perflab.paths import figures_dir
from perflab.recordings import Run

# The table that holds the profiler's output.
CALL_CHAINS = "speedscope"


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


def judging_of(run: Run) -> list[Judging]:
    """Return the judging rules of the views that suit a run, in the order of the views.

    Nothing is drawn.
    """
    return [view.judging for view in _declared(run) if view.judging and view.suits(run)]


def _declared(run: Run) -> Sequence[View]:
    """Return the VIEWS of the run's system; none where it is not installed or has none."""
    return _declared_by(run.record.system or _system_of(run.record.experiment))


def _declared_by(system: str) -> Sequence[View]:
    if system not in systems.systems():
        return ()
    module = f"{systems.__name__}.{system}.views"
    if importlib.util.find_spec(module) is None:
        return ()
    declared: Sequence[View] = importlib.import_module(module).VIEWS
    return declared


def _system_of(experiment: str) -> str:
    try:
        return systems.system_of(experiment)
    except ParameterError:
        return ""


def draw(run: Run, name: str) -> LabFigure:
    """Draw one view of a run, with the same digits as its file.

    A view that does not suit the run says that there is nothing to show.

    Raises
    ------
    ParameterError
        The run's system has no view of that name; the message proposes the nearest.
    """
    views = {view.name: view for view in _declared(run) or GENERAL_VIEWS}
    if name not in views:
        near = did_you_mean(name, views)
        raise ParameterError("view", [f"no view '{name}'{near}; there are: {', '.join(views)}"])
    return draw_view(views[name], run)


def save_all(
    run: Run, directory: Path | None = None, *, pdf: bool = False, names: Sequence[str] = ()
) -> list[Path]:
    """Save the named views of a run (no name: all that suit it), each with its table as CSV.

    The files go to ``directory``, by default ``<figures>/<run id>/``. Return the paths of SVG,
    PNG, PDF (with ``pdf``) and CSV of each figure, in this order. The figure of a profile also has
    a file of its call chains, which https://www.speedscope.app opens.
    """
    target = figures_dir() / run.run_id if directory is None else directory
    formats = (*FORMATS, "pdf") if pdf else FORMATS
    chosen = [view for view in views_of(run) if not names or view.name in names]
    paths = [path for view in chosen for path in save_view(view, run, target, formats)]
    if PROFILE not in chosen or CALL_CHAINS not in run.record.tables:
        return paths
    texts = (
        (f"{row['treatment']}, block {row['block']}", str(row["content"]))
        for row in run.table(CALL_CHAINS).to_dict("records")
    )
    chains = target / f"{PROFILE.name}.json"
    write_whole(chains, py_spy.joined(texts, run.run_id).encode())
    return [*paths, chains]
