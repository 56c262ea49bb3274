"""``perflab new``: something of one's own, ready to run."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Lay out something of your own, ready to run.")


@app.callback()
def group() -> None:
    """Lay out something of your own, ready to run.

    Example: perflab new experiment checkout_speed
    """


@app.command("experiment")
def experiment(
    name: Annotated[str, typer.Argument(help="small letters, digits and _, a letter first")],
) -> None:
    """Lay out an experiment: its module, notebook, an example of a service, and a test.

    It runs as it is; put your own service in the place of the example (docs/own-experiment.md).
    Nothing is written where anything is wrong.

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
