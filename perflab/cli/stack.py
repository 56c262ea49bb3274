"""``perflab stack``: services outside a run; ``perflab doctor``: is this machine fit to measure?"""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Start, list, read and remove services outside a run.")


@app.command()
def up(
    stack: Annotated[str, typer.Argument(help="stack to start; an unknown name lists all stacks")],
    backend: Annotated[str, typer.Option(help="auto, docker or process")] = "auto",
) -> None:
    """Start a stack and leave it running; 'perflab stack down' ends it.

    Example: perflab stack up NAME --backend process
    """
    from perflab.cli.actions import stacks

    stacks.start(stack, backend)


@app.command()
def ps() -> None:
    """List the lab's services that are up, and the current measurement.

    Example: perflab stack ps
    """
    from perflab.cli.actions import stacks

    stacks.list_services()


@app.command()
def logs(
    service: Annotated[str, typer.Argument(help="service, as 'perflab stack ps' names it")],
    lines: Annotated[int, typer.Option("-n", "--lines", min=1)] = 50,
) -> None:
    """Print the last log lines of a service that is up.

    Example: perflab stack logs postgres
    """
    from perflab.cli.actions import stacks

    stacks.print_log(service, lines)


@app.command()
def down(
    every: Annotated[
        bool, typer.Option("--all", help="also the services of the current measurement")
    ] = False,
) -> None:
    """Stop and remove the lab's services, and those that a crash left behind.

    Example: perflab stack down --all
    """
    from perflab.cli.actions import stacks

    stacks.end(every=every)


def doctor() -> None:
    """Check the engine, disk, cores, other load and leftovers of this machine; change nothing.

    Where a perflab.toml is, the same is checked as before a duel of the commit that is checked out:
    programs, stores, ports, addresses, variables, the repository.

    Exit status 1 if something would prevent or spoil measurements.

    Example: perflab doctor
    """
    from perflab.cli.actions import doctor

    if not doctor.print_findings():
        raise typer.Exit(1)
