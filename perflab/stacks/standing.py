"""A stack that a user starts to keep: up until told down."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perflab.host.placing import Placement
from perflab.stacks.backend import HOST, Backend
from perflab.stacks.plan import StackPlan
from perflab.stacks.residents import Residents


@dataclass(frozen=True)
class Standing:
    """A stack that is up: node name to address, and where its secret is if it was to be kept."""

    addresses: dict[str, str]
    secret_file: Path | None = None


def stand(
    plan: StackPlan,
    backend: Backend,
    places: Placement,
    tell: Callable[[str], None],
    keep_secret: bool = False,
) -> Standing:
    """Start a stack that outlives this process.

    Parameters
    ----------
    keep_secret : bool
        The user needs the stack's secret: it is put into a file that only the user can read, and
        that goes when the stack goes.
    """
    identity = f"up-{secrets.token_hex(3)}"
    residents = Residents(backend, {"up": plan}, places, identity, "up", tell)
    residents.prepare()
    residents.start()
    try:
        residents.activate("up")
        secret_file = residents.keep_secret() if keep_secret else None
    except BaseException:
        residents.stop()
        raise
    addresses = {
        name: f"http://{HOST}:{instance.launch.port}"
        if instance.launch.spec.health.http
        else f"{HOST}:{instance.launch.port}"
        for name, instance in residents.active("up").items()
    }
    return Standing(addresses, secret_file)
