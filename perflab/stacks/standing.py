"""A stack that a user starts to keep: up until told down."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from perflab.host.placing import Placement
from perflab.stacks.backend import HOST, Backend
from perflab.stacks.plan import StackPlan
from perflab.stacks.residents import Residents


def stand(
    plan: StackPlan,
    backend: Backend,
    places: Placement,
    tell: Callable[[str], None],
) -> dict[str, str]:
    """Start a stack that outlives this process; return the address of each node by name."""
    identity = f"up-{secrets.token_hex(3)}"
    residents = Residents(backend, {"up": plan}, places, identity, "up", tell)
    residents.prepare()
    residents.start()
    try:
        residents.activate("up")
    except BaseException:
        residents.stop()
        raise
    return {
        name: f"http://{HOST}:{instance.launch.port}"
        if instance.launch.spec.health.http
        else f"{HOST}:{instance.launch.port}"
        for name, instance in residents.active("up").items()
    }
