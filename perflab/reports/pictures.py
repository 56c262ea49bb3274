"""The pictures of a run: the views of its system, drawn and saved."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path

from perflab import systems
from perflab.errors import ParameterError
from perflab.figures import GENERAL_VIEWS, Drawing, View, draw_view, flame_views, save_view
from perflab.parameters import did_you_mean
from perflab.paths import figures_dir
from perflab.recordings import Run

# What a system's VIEWS hold: views, and what makes as many as a run has something to show of.
Views = View | Callable[[Run], Sequence[View]]


def views_of(run: Run) -> list[View]:
    """Return the views that suit a run, in the order in which they are shown.

    They are those of its system; a run of a system that is not installed has the general ones that
    it holds something of.
    """
    declared = _declared(run)
    if declared is None:
        general = [*GENERAL_VIEWS, *flame_views(run)]
        return [view for view in general if not view.table(run).empty]
    every = [[each] if isinstance(each, View) else each(run) for each in declared]
    return [view for views in every for view in views if view.suits(run)]


def _declared(run: Run) -> Sequence[Views] | None:
    system = run.record.system or _system_of(run.record.experiment)
    if system not in systems.systems():
        return None
    place = f"{systems.__name__}.{system}.views"
    if importlib.util.find_spec(place) is None:
        return None
    declared: Sequence[Views] = importlib.import_module(place).VIEWS
    return declared


def _system_of(experiment: str) -> str:
    try:
        return systems.system_of(experiment)
    except ParameterError:
        return ""


def draw(run: Run, name: str) -> Drawing:
    """Draw one view of a run, with the digits that its file would have.

    Raises
    ------
    ParameterError
        The run has no view of that name; the message proposes the nearest.
    """
    views = {view.name: view for view in views_of(run)}
    if name not in views:
        known = ", ".join(views)
        raise ParameterError(
            "view", [f"no view '{name}'{did_you_mean(name, views)}; this run has: {known}"]
        )
    return draw_view(views[name], run)


def draw_all(run: Run) -> dict[str, Drawing]:
    """Return every picture of a run, by name."""
    return {view.name: draw_view(view, run) for view in views_of(run)}


def save_all(run: Run, directory: Path | None = None, *, pdf: bool = False) -> list[Path]:
    """Save every picture of a run, each drawn from its table, which lies beside it as CSV.

    Parameters
    ----------
    directory : Path, optional
        By default ``<figures>/<run id>/``.
    pdf : bool
        Also write PDF files.

    Returns
    -------
    list of Path
        SVG, PNG and CSV of each figure, in this order; of flame graphs SVG and CSV.
    """
    target = figures_dir() / run.run_id if directory is None else directory
    return [path for view in views_of(run) for path in save_view(view, run, target, pdf=pdf)]
