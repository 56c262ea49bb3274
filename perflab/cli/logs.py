"""``perflab stack logs``: the last lines of a service."""

from __future__ import annotations

from typing import Annotated

import typer

from perflab.errors import ParameterError


def command(
    service: Annotated[str, typer.Argument(help="service, as 'perflab stack ps' names it")],
    lines: Annotated[int, typer.Option("-n", "--lines", min=1)] = 50,
) -> None:
    """Print the last log lines of a service that is up.

    Example: perflab stack logs postgres
    """
    from perflab.parameters import did_you_mean
    from perflab.stacks.leftovers import everything, log_of

    found = everything()
    chosen = [item for item in found if item.service == service]
    if not chosen:
        names = sorted({item.service for item in found})
        listed = ", ".join(names) or "none"
        raise ParameterError(
            "perflab stack logs",
            [f"no service '{service}' is up{did_you_mean(service, names)}; up: {listed}"],
        )
    for item in chosen:
        print(log_of(item, lines))
