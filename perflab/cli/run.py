"""``perflab run``: runs one experiment."""

from __future__ import annotations

from typing import Annotated

import typer

from perflab.cli.outputs import named_here, print_shown
from perflab.errors import ParameterError

NO_TRIAL_COUNTS = 4


def command(
    name: Annotated[str, typer.Argument(help="experiment; 'perflab experiments' lists them")] = "",
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--parameter",
            help="key=value; a list as key=a,b; repeatable ('perflab experiments NAME' lists them)",
        ),
    ] = None,
    backend: Annotated[
        str, typer.Option(help="auto (Docker where an engine answers), docker or process")
    ] = "",
    resume: Annotated[str, typer.Option(help="finish this run, with its own parameters")] = "",
    wait: Annotated[
        float, typer.Option(help="seconds to wait until another measurement ends")
    ] = 0.0,
) -> None:
    """Run an experiment; print what it found, and save figures and a section for a document.

    Exit status: 0 measured; 1 an error; 2 an option cannot be read; 4 no trial counts, so there is
    no answer; 130 interrupted.

    Example: perflab run sync_vs_async -p blocks=6 -p workers=1,4

    Example: perflab run --resume latest
    """
    from perflab import api
    from perflab.parameters import parse_assignments
    from perflab.paths import figures_dir

    values = parse_assignments(parameter or [])
    values |= {"backend": backend} if backend else {}
    values |= {"wait_s": wait} if wait else {}
    if resume:
        values["resume"] = resume
        name = name or api.open_run(resume, unfinished=True).record.experiment
    if not name:
        raise ParameterError(
            "perflab run", ["no experiment is named: give its name, or --resume RUN"]
        )
    run = api.run(name, values)
    # Late: a measurement does not wait for what judges and draws.
    from perflab.reports.rules import findings_of
    from perflab.reports.section import write_report
    from perflab.reports.verdicts import shown_answers

    findings = findings_of(run)
    folder = named_here(write_report(run, findings, figures_dir() / run.run_id)[0].parent)
    print_shown(shown_answers(run, findings))
    print(f"\nFigures, tables and section: {folder}/")
    print(f"More of it: perflab show {run.run_id}")
    if run.valid_trials().empty:
        raise typer.Exit(NO_TRIAL_COUNTS)
