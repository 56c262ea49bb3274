"""``perflab worker``: this host measures for sweeps, and sends loads, of others."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    scheduler: Annotated[
        str, typer.Argument(help="address of the Dask scheduler, such as tcp://head:8786")
    ],
    listen: Annotated[
        str,
        typer.Option(help="address of this host on which scheduler and workers reach it"),
    ] = "127.0.0.1",
) -> None:
    """Be this host's worker for --scheduler of 'perflab sweep' and 'perflab load', one at a time.

    Whoever reaches the scheduler can execute anything here: a network of your own, or TLS as Dask
    has it. SIGTERM ends the cell under way in order, and a load as one that failed.

    Example: perflab worker tcp://head:8786 --listen node1
    """
    from perflab.cluster.worker import serve

    serve(scheduler, listen)
