"""``perflab new``: something of one's own, ready to run."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Lay out something of your own, ready to run.")


@app.callback()
def group() -> None:
    """Lay out something of your own, ready to run.

    Example: perflab new experiment checkout_speed --service http://127.0.0.1:8000/
    """


@app.command("experiment")
def experiment(
    name: Annotated[str, typer.Argument(help="small letters, digits and _, a letter first")],
    to: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="folder that gets it; else the one that perflab.toml names, else "
            "./perflab_experiments and a new perflab.toml",
        ),
    ] = "",
    service: Annotated[
        str,
        typer.Option(
            metavar="URL|COMMAND|DIR",
            help="what is measured: an address where it runs, a command that starts it, or a "
            "folder with its Dockerfile, which is copied; an example unless given",
        ),
    ] = "",
    command: Annotated[
        str,
        typer.Option(help="how what is in the folder starts, where its Dockerfile has no CMD"),
    ] = "",
    path: Annotated[str, typer.Option(help="what the load asks the service for")] = "/",
    health: Annotated[
        str, typer.Option(metavar="PATH", help="answered once it can be used; --path unless given")
    ] = "",
) -> None:
    """Lay out an experiment: its module, notebook, service and test, ready to run.

    A command or CMD is told where to listen by {host} and {port} in it, and by HOST and PORT in
    its environment. Nothing is written where anything is wrong. docs/own-experiment.md goes on.

    Example: perflab new experiment first_try

    Example: perflab new experiment checkout_speed --service http://127.0.0.1:8000/cart

    Example: perflab new experiment search_speed --service 'python3 app.py --port {port}'

    Example: perflab new experiment mail_speed --service ./mail --path /inbox --health /ready
    """
    from perflab.scaffold.layout import lay_out

    laid = lay_out(name, to, service, command, path, health)
    if laid.made is not None:
        print(laid.made)
    for file in sorted(laid.files):
        print(file)
    notebook = laid.home / "notebooks" / f"{name}.ipynb"
    print(f"\nperflab run {name} -p blocks=4")
    print(f"papermill {notebook} {name}-done.ipynb -p blocks 4")
    print(f"pytest {laid.home / 'tests'}")
