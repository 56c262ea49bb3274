"""``perflab experiments``: what can be run."""

from __future__ import annotations

from perflab.cli.console import console as make_console


def command() -> None:
    """List the experiments, their questions and parameters."""
    from perflab.experiments import experiment, names

    console = make_console()
    for name in names():
        found = experiment(name)
        console.print(f"[bold]{name}[/bold]: {found.question}")
        for parameter, field in found.parameters.model_fields.items():
            console.print(f"    {parameter} = {field.default!r}", markup=False)
