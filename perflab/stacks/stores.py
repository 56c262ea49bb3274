"""Stores: what services keep their data in, filled once per run by the setups of these services.

A store is a service whose description has ``[store]``. It starts empty; where a service that needs
it has ``[setup]``, it starts with a copy of the data that the setup has left in it. Where one of
the stores that a service needs cannot be copied, all of them start empty, and its setup runs each
time.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence

from perflab.errors import HookFailed, ServiceFailed, StackError
from perflab.host.processes import how_it_ended
from perflab.parameters import unknown
from perflab.stacks.backend import Instance, Launch
from perflab.stacks.commands import Interrupted, go_on
from perflab.stacks.hints import with_hints
from perflab.stacks.plan import Node
from perflab.stacks.resets import named
from perflab.stacks.spec import BEGIN_IN, load_service, render, service_names
from perflab.stacks.starting import CAUSE_SEEN_WITHIN_S, refuse_dead

PREFIX = "store_"
POLL_EVERY_S = 0.05
# A vacuum of some GiB takes minutes.
REST_WITHIN_S = 3600.0


def store_node(name: str, wanted: str, apart: str = "") -> Node:
    """Return the node of a store: ``postgres``, ``redis``, or one with a version, ``postgres:18``.

    Treatments with different ``apart`` have a store each. Raises StackError where there is no such
    store, or only another version of it.
    """
    kind, _, version = wanted.partition(":")
    kinds = [each.removeprefix(PREFIX) for each in service_names() if each.startswith(PREFIX)]
    if problems := unknown("store", [kind], kinds):
        raise StackError(f"{name} = '{wanted}': {problems[0]}")
    spec = load_service(f"{PREFIX}{kind}")
    assert spec.store is not None
    if version and not f"{spec.store.version}.".startswith(f"{version}."):
        there = f"{spec.store.text} is there"
        raise StackError(f"{name} = '{wanted}': {there}; write '{kind}' to use that")
    return Node(name=name, service=spec.name, apart=apart)


def told_by(needed: Mapping[str, Launch]) -> dict[str, str]:
    """Return what stores tell who needs them, by placeholder: ``db.url`` of the one in role db."""
    values: dict[str, str] = {}
    for role, launch in needed.items():
        if store := launch.spec.store:
            told = {"user": store.user, "password": launch.secret, "name": store.name}
            told["url"] = render(store.url, {**launch.placeholders(), **told})
            values |= {f"{role}.{name}": value for name, value in told.items()}
    return values


def run_setup(
    node: str, setup: Instance, stores: Mapping[str, Instance], interrupted: Interrupted
) -> None:
    """Wait until the setup of a node, which has been started, has filled its stores.

    Raises ServiceFailed, with its last lines, where it fails or takes too long, or a store dies.
    """
    described = setup.launch.spec.setup
    assert described is not None
    words = described.command
    is_in_a_folder = words[: len(BEGIN_IN)] == BEGIN_IN
    own = shlex.join(words[len(BEGIN_IN) + 1 :] if is_in_a_folder else words)
    what = f"its setup ({own})"
    deadline = time.monotonic() + described.timeout_s
    while (status := setup.exit_status()) is None:
        refuse_dead(stores)
        go_on(interrupted, f"during the setup of {node}")
        if time.monotonic() > deadline:
            problem = f"{what} took longer than {described.timeout_s:g} s"
            raise ServiceFailed(node, problem, setup.log())
        time.sleep(POLL_EVERY_S)
    if status:
        time.sleep(CAUSE_SEEN_WITHIN_S)
        refuse_dead(stores)
        problem = with_hints(f"{what} {how_it_ended(status)}", setup)
        raise ServiceFailed(node, problem, setup.log())


def rest(node: str, store: Instance, interrupted: Interrupted) -> None:
    """Let a store that was filled do what is left to do for its data."""
    described = store.launch.spec.store
    if described and described.rest:
        with named(f"rest of store '{node}'", store):
            store.run(described.rest, REST_WITHIN_S, interrupted)


def lay_to_rest(node: str, running: dict[str, Instance], interrupted: Interrupted) -> None:
    """Stop a store that was filled, with nothing left to do for its data, which stay."""
    rest(node, running[node], interrupted)
    if running.pop(node).stop(keep_data=True):
        raise HookFailed(f"store '{node}' had to be killed after its setup: its data may be broken")


def to_fill(residents: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Return the residents whose setup runs once, and the stores that these fill."""
    fillers = [
        item
        for item in residents
        if load_service(item.service).setup and not is_filled_anew(item, residents)
    ]
    names = {name for item in fillers for name in item.needs.values()}
    return fillers, [item for item in residents if item.name in names]


def is_filled_anew(item: Node, residents: Sequence[Node]) -> bool:
    """Return whether a resident's setup runs before each of its starts: a store has no copy."""
    stores = [load_service(other.service).store for other in residents
              if other.name in item.needs.values()]  # fmt: skip
    needs_setup = load_service(item.service).setup is not None
    return needs_setup and any(store is not None and not store.rest for store in stores)
