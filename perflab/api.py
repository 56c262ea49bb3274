"""The public functions of the lab: run experiments, and show and export their runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from perflab import recordings, systems
from perflab.errors import ParameterError, PerflabError
from perflab.paths import figures_dir, runs_dir
from perflab.recordings import Run, is_whole
from perflab.recordings.causes import is_explained
from perflab.recordings.display import Lines, Shown
from perflab.reports.runs import latest_runs, questions
from perflab.trials.arguments import asked_for, existing, notebook_values, order_of
from perflab.trials.client import conduct
from perflab.trials.progress import showing
from perflab.trials.run_parameters import RunParameters

if TYPE_CHECKING:
    from perflab.figures import LabFigure
    from perflab.load.summary_table import ShownSummary
    from perflab.reports.verdicts import Saved

# Functions import what they need to judge and draw, so that a measurement does not wait for it.


Compared = Run | str | Path | Iterable[Run | str | Path]
__all__ = [
    "answers", "bottlenecks", "claim_counts", "claim_ledger", "compare", "draw", "export",
    "findings", "import_results", "latest_runs", "notebook_parameters", "open_run", "questions",
    "run", "runs", "save", "send_load", "show", "study_check", "summary", "trials_of",
]  # fmt: skip


def run(experiment: str, parameters: Mapping[str, Any] | RunParameters | None = None) -> Run:
    """Run an experiment (``perflab experiments`` lists them) and return its recording.

    ``parameters`` are checked before anything starts. ``from_run`` returns an existing run without
    measuring, and ``resume`` finishes one that lacks trials, or looks for its ``why``; all others
    must be as in that run.

    Raises ParameterError with every problem, and another PerflabError where the run could not be
    finished; committed trials are kept.
    """
    chosen = systems.experiment(experiment)
    checked = asked_for(chosen, parameters or {})
    if checked.from_run:
        return existing(checked.from_run, experiment, "from_run")
    if checked.resume:
        run = existing(checked.resume, experiment, "resume")
        is_wanted = getattr(checked, "why", False) and not is_explained(run)
        if is_whole(run) and not is_wanted:
            return run
    order = order_of(chosen, checked)
    with showing() as show:
        return Run(conduct(order, show))


def notebook_parameters(experiment: str, namespace: MutableMapping[str, Any]) -> RunParameters:
    """Read and check a notebook's parameters from its ``globals()``.

    Names that the experiment does not know, injected by papermill or in the cell of defaults, are
    refused, with the nearest known name; papermill itself only warns. So are values that the cell
    of defaults sets again, because it has lost its tag. With ``from_run`` or ``resume`` the
    parameters of that run are returned, and other given values are refused (see
    :func:`perflab.trials.arguments.asked_for`).

    Where it refuses, it removes the earlier ``parameters`` and ``run`` from the namespace: Jupyter
    may execute the cells below all the same, and they would show another run under these values.
    """
    chosen = systems.experiment(experiment)
    fields = chosen.parameters.model_fields
    defaults = {name: field.get_default() for name, field in fields.items()}
    try:
        checked = asked_for(chosen, notebook_values(defaults, namespace))
        if not (checked.from_run or checked.resume):
            # What cannot begin is told in the cell of the parameters.
            chosen.plan(checked)
    except PerflabError:
        for name in ("parameters", "run"):
            namespace.pop(name, None)
        raise
    return checked


def open_run(reference: str | Path, *, unfinished: bool = False) -> Run:
    """Return a recorded run by path, id (or its end), ``latest`` or ``latest:<experiment>``.

    With ``unfinished`` the latest is one that can be resumed.
    """
    return recordings.open_run(reference, runs_dir(), unfinished=unfinished)


def runs() -> list[Run]:
    """Return all recorded runs, oldest first."""
    return recordings.list_runs(runs_dir())


def import_results(groups: Mapping[str, Sequence[str | Path]], tool: str = "") -> Run:
    """Import results of another load tool as a run; what the tool does not report is missing.

    ``groups`` has the files of every treatment, all of one tool, which is recognised unless
    ``tool`` names it. ImportRefused names file and line where a file is damaged or of another tool;
    then nothing was written.
    """
    from perflab.recordings.imports import import_files

    paths = {name: [*map(Path, files)] for name, files in groups.items()}
    return import_files(paths, runs_dir(), tool)


def compare(a: Compared, b: Compared) -> Shown:
    """Show what changed from runs A to runs B of one experiment, per treatment and response.

    A side is a run, a reference (see :func:`open_run`), or several of them. With three or more a
    side the run is the unit, and responses are better or worse.
    """
    from perflab.analysis.between_runs import compare_runs
    from perflab.reports.verdicts import shown_comparison

    sides = _runs_of(a), _runs_of(b)
    if not all(sides):
        raise ParameterError("compare", ["a side has no runs; name at least one"])
    return shown_comparison(*sides, compare_runs(*sides))


def trials_of(which: Compared | None = None) -> pd.DataFrame:
    """Return the trials of several runs as one table with a row per trial, run by run.

    ``which`` is a run, a reference (see :func:`open_run`), or several of them; by default all runs,
    oldest first. The first columns are about the run: ``run``, ``experiment``, ``backend``,
    ``run_state``, ``created_at`` (UTC), ``commit``, ``dirty``, ``machine``, ``question_id`` (equal
    where two runs asked the same on the same machine and backend), and ``parameter_<name>`` for
    each parameter that differs between the runs. Then come the columns of
    :meth:`perflab.recordings.Run.trials` without lists; ``reasons`` and ``warnings`` are text.
    Trials have every state, superseded ones too; ``.attrs["problems"]`` names damaged ones, which
    are left out.
    """
    return recordings.trials_of_runs(runs() if which is None else _runs_of(which))


def _runs_of(which: Compared) -> list[Run]:
    several = [which] if isinstance(which, str | Path | Run) else list(which)
    return [item if isinstance(item, Run) else open_run(item) for item in several]


def answers(run: Run) -> Shown:
    """Show what a run found: a row for each claim, with its effect and what the study says."""
    from perflab.reports.rules import findings_of
    from perflab.reports.verdicts import shown_answers

    return shown_answers(run, findings_of(run))


def findings(run: Run) -> Shown:
    """Show published against measured, with the evidence of verdicts; ``.table`` is the data."""
    from perflab.reports.rules import findings_of
    from perflab.reports.verdicts import shown_findings

    return shown_findings(run, findings_of(run))


def summary(run: Run) -> Shown:
    """Show what each treatment did: trials, throughput, latency, CPU, flush cost."""
    from perflab.reports.verdicts import shown_summary

    return shown_summary(run)


def bottlenecks(run: Run) -> Lines:
    """Return in sentences where the time goes, and which parts make up changes."""
    from perflab.reports import section

    return Lines(section.bottlenecks(run))


def show(table: pd.DataFrame) -> Shown:
    """Show a table whole; pandas would cut long cells."""
    from perflab.reports.verdicts import shown_table

    return shown_table(table)


def claim_ledger(study: str = "", outcome: str = "", backend: str = "") -> Shown:
    """Show every published row with what became of it; ``.table`` is the data.

    ``study`` limits the rows, and ``backend`` (docker or process) the runs whose verdicts count.
    ``outcome`` limits the rows to those of which this became (``not measured``...), or to the
    ``judged`` ones.
    """
    from perflab.reports.ledger import ledger, narrowed, shown_ledger

    return shown_ledger(narrowed(ledger(study, backend), outcome))


def claim_counts(study: str = "", backend: str = "") -> Shown:
    """Show the number of published rows by outcome and study."""
    from perflab.reports.ledger import ledger, shown_counts

    return shown_counts(ledger(study, backend))


def study_check(study: str = "", finding: str = "") -> Shown:
    """Show what the published numbers say by themselves, without any run.

    ``study`` and ``finding`` (``inconsistent``, ``consistent`` or ``cannot be told``) limit the
    checks.
    """
    from perflab.reports.ledger import check_table, shown_checks

    return shown_checks(check_table(study, finding))


def draw(run: Run, name: str) -> LabFigure:
    """Draw one of the run's figures by name; the error for a wrong name lists the figures."""
    from perflab.reports import figures

    return figures.draw(run, name)


def save(run: Run) -> Saved:
    """Save every figure (SVG, PNG and table) and the section of the run; return their paths.

    They show themselves below the answer: in a notebook that was run, this cell comes last.
    """
    from perflab.reports.rules import findings_of
    from perflab.reports.section import write_report
    from perflab.reports.verdicts import Saved, headline

    findings = findings_of(run)
    paths = write_report(run, findings, figures_dir() / run.run_id)
    return Saved(paths, headline(run, findings))


def export(
    what: Run | Iterable[Run],
    to: str | Path,
    formats: Iterable[str] = ("md",),
    overwrite: bool = False,
    views: Iterable[str] = (),
    full: bool = False,
) -> Saved:
    """Write runs as sections of a document (md, html, pdf, docx); return all paths.

    A repeated export rewrites the text between the marks and leaves all other text alone. It
    refuses a marked text that was edited by hand, unless ``overwrite``. A section is one page with
    one figure, or all there is if ``full``; ``views`` names the figures.
    """
    from perflab.reports import exporting
    from perflab.reports.verdicts import Saved

    runs_to_export = [what] if isinstance(what, Run) else list(what)
    target = exporting.Destination(Path(to), overwrite=overwrite)
    content = exporting.Content(tuple(views), full)
    told: list[str] = []
    paths = exporting.export_runs(runs_to_export, target, list(formats), content, told.append)
    return Saved(paths, "; ".join(told))


def send_load(url: str, **options: Any) -> ShownSummary:
    """Send load to an address without an experiment; see :func:`perflab.load.once.send`."""
    from perflab.load import once
    from perflab.load.summary_table import ShownSummary

    summary = once.send(url, **options)
    return ShownSummary.model_construct(summary.model_fields_set, **dict(summary))
