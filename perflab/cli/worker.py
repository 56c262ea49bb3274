"""``perflab worker``: this host measures for sweeps of others."""

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
    """Be this host's worker for 'perflab sweep --scheduler': one measurement at a time.

    Whoever reaches the scheduler can execute anything here: a network of your own, or TLS as Dask
    has it. SIGTERM ends the cell under way in order.

    Example: perflab worker tcp://head:8786 --listen node1
    """
    from perflab.sweeps.hosts.worker import serve

    serve(scheduler, listen)
