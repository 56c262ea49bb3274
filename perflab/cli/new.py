"""``perflab new``: a new experiment that is ready to run."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Create an experiment that is ready to run.")


@app.callback()
def group() -> None:
    """Create an experiment that is ready to run.

    Example: perflab new experiment checkout_speed
    """


@app.command("experiment")
def experiment(
    name: Annotated[str, typer.Argument(help="lower-case letters, digits and _; a letter first")],
) -> None:
    """Create an experiment: its module, notebook, an example service, and a test.

    It runs as it is. Then replace the example by your own service (docs/own-experiment.md). If
    anything is wrong, nothing is written.

    Example: perflab new experiment checkout_speed
    """
    from perflab.cli.scaffold import lay_out

    new = lay_out(name)
    if new.settings is not None:
        print(new.settings)
    for file in sorted(new.files):
        print(file)
    notebook = new.home / "notebooks" / f"{name}.ipynb"
    print(f"\nperflab run {name} -p blocks=4")
    print(f"papermill {notebook} {name}-done.ipynb -p blocks 4")
    print(f"pytest {new.home / 'tests'}")
