"""``perflab worker``: this host measures cells of a sweep over several hosts."""

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

    Anybody who reaches the scheduler can execute anything here: use a private network or Dask's
    TLS. SIGTERM ends the current cell in order.

    Example: perflab worker tcp://head:8786 --listen node1
    """
    from perflab.sweeps.hosts.worker import serve

    serve(scheduler, listen)
