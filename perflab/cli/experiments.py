"""``perflab experiments``: what can be run."""

from __future__ import annotations

from rich.console import Console


def command() -> None:
    """List the experiments, their questions and parameters."""
    from perflab.experiments import experiment, names

    console = Console()
    for name in names():
        found = experiment(name)
        console.print(f"[bold]{name}[/bold]: {found.question}")
        for parameter, field in found.parameters.model_fields.items():
            console.print(f"    {parameter} = {field.default!r}", markup=False)
