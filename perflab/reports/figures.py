"""The pictures of a run: the views of its system, drawn and saved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perflab import systems
from perflab.analysis.evaluation import Finding
from perflab.errors import ParameterError
from perflab.figures import CAUSES, GENERAL_VIEWS, PROFILE, LabFigure, View, draw_view, save_view
from perflab.figures.export import write_whole
from perflab.parameters import unknown
from perflab.recordings import Run
from perflab.recordings.causes import PROFILED, part_of


def views_of(run: Run) -> list[View]:
    """Return the views that suit a run, in the order in which they are shown.

    The run's system declares them. A run of a system that is not installed has the general views
    for which it has data.
    """
    declared = declared_views(run.record.system)
    suiting = [view for view in declared or GENERAL_VIEWS if view.suits(run)]
    return suiting if declared else [view for view in suiting if not view.shown(run).empty]


def declared_views(system: str) -> Sequence[View]:
    """Return the VIEWS that a system declares; none where it is not installed or has none."""
    return systems.declared(system, "views", "VIEWS", View, ())


def draw(run: Run, name: str) -> LabFigure:
    """Draw one view of a run, with the same digits as its file.

    A view that does not suit the run says that there is nothing to show.

    ParameterError where the run's system has no view of that name; the message proposes the
    nearest.
    """
    views = {view.name: view for view in declared_views(run.record.system) or GENERAL_VIEWS}
    if problems := unknown("view", [name], views):
        raise ParameterError("view", problems)
    return draw_view(views[name], run)


def save_all(
    run: Run,
    directory: Path,
    names: Sequence[str] = (),
    findings: Sequence[Finding] | None = None,
) -> list[Path]:
    """Save the named views of a run (no name: all that suit it), each with its table as CSV.

    ``findings`` are those of the run, as for :meth:`View.shown`.
    Return the paths of SVG, PNG and CSV of each figure, in this order. A figure that rests on
    profiles also has a file with a line for each call chain and its samples, below the name of its
    treatment: the "folded" form, which https://www.speedscope.app and flamegraph.pl open.
    """
    chosen = [view for view in views_of(run) if not names or view.name in names]
    paths: list[Path] = []
    for view in chosen:
        paths += save_view(view, run, directory, findings=findings)
        profiled = {PROFILE: run, CAUSES: part_of(run, PROFILED)}.get(view)
        if profiled and (lines := _call_chains(profiled)):
            chains = directory / f"{view.name}.txt"
            write_whole(chains, lines.encode())
            paths.append(chains)
    return paths


def _call_chains(run: Run) -> str:
    calls = run.table("calls").groupby(["treatment", "chain"])["samples"].sum().reset_index()
    return "".join(
        f"{row['treatment']};{row['chain']} {row['samples']}\n" for row in calls.to_dict("records")
    )
