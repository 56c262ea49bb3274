"""The rungs: the published phases one by one, and what lies beside and beyond them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Literal

from pydantic import Field

from perflab.load.workload import Reuse
from perflab.parameters import Parameters

Threading = Literal["thread", "producer_consumer", "pool", "epoll"]
Set = Literal["phases", "interaction", "saturation", "parts", "clients", "backlog", "naive"]
LoadFrom = Literal["lab", "naive_client"]
# One request at a time: one worker, as before the first phase.
SEQUENTIAL = {"threading": "pool", "threads": 1}


class Rung(Parameters):
    """A server and the load it gets.

    ``load`` is ``target`` (``times`` the target rate), ``low`` (the low rate) or ``closed``: so
    many ``users`` without think time (0: as many as there are clients). ``long_body`` sends as many
    metrics in a request as the run has for it, else one. ``load_from`` says who posts: the lab's
    clients, or the load tests of the study, built anew.
    """

    label: str
    threading: Threading = "thread"
    threads: int = 16
    keep_alive: Literal["off", "on"] = "off"
    parser: Literal["quadratic", "linear"] = "linear"
    store: Literal["double_mutex", "per_client", "ring"] = "per_client"
    backlog: int = 1024
    connection: Reuse = "per_request"
    load: Literal["target", "low", "closed"] = "target"
    times: float = Field(default=1.0, gt=0)
    users: int = Field(default=0, ge=0)
    long_body: bool = False
    load_from: LoadFrom = "lab"

    @property
    def settings(self) -> dict[str, str | int | float]:
        """Return the settings of the service."""
        own = ("threading", "threads", "keep_alive", "parser", "store", "backlog")
        return {name: getattr(self, name) for name in own}


def _rung(label: str, *changes: Mapping[str, Any]) -> Rung:
    merged: dict[str, Any] = {"label": label}
    for each in changes:
        merged |= each
    return Rung.model_validate(merged)


OLD: Mapping[str, Any] = {"parser": "quadratic", "store": "double_mutex"}
QUEUED: Mapping[str, Any] = {"threading": "producer_consumer", "store": "double_mutex"}
POOL: Mapping[str, Any] = {"threading": "pool"}
REUSED: Mapping[str, Any] = {"keep_alive": "on", "connection": "keep_alive"}
PHASES: dict[str, Rung] = {
    "sequential": _rung("before phase 1: one worker", OLD, SEQUENTIAL),
    "phase_1": _rung("phase 1: a thread per request", OLD),
    "phase_2": _rung("phase 2: producer and consumers", OLD, QUEUED),
    "phase_3": _rung("phase 3: linear parser", QUEUED),
    "phase_4": _rung("phase 4: lock-free ring", QUEUED, {"store": "ring"}),
    "phase_5": _rung("phase 5: a mutex per client", QUEUED, {"store": "per_client"}),
    "phase_6": _rung("phase 6: pool of 16", POOL),
    "phase_7": _rung("phase 7: keep-alive, pool of 16", POOL, REUSED),
    "long_quadratic": _rung("long body, quadratic parser", QUEUED, OLD, {"long_body": True}),
    "long_linear": _rung("long body, linear parser", QUEUED, {"long_body": True}),
}
# What each phase is set against: the study's steps, but for phases 4 and 5, two other stores.
BEFORE = {
    "phase_1": "sequential",
    "phase_2": "phase_1",
    "phase_3": "phase_2",
    "phase_4": "phase_3",
    "phase_5": "phase_3",
    "phase_6": "phase_5",
    "phase_7": "phase_6",
    "long_linear": "long_quadratic",
}
THREADINGS: tuple[Threading, ...] = ("thread", "pool", "epoll")
# Epoll loops beyond the cores would only take them from each other.
THREADS = {"thread": 16, "pool": 16, "epoll": 2}
SERVERS = {"closes": "off", "keeps": "on"}
CLIENTS: dict[str, Reuse] = {"new": "per_request", "reused": "keep_alive"}
FULL = {"load": "closed"}


def _crossed(threading: Threading, server: str, client: str, **more: Any) -> Rung:
    words = f"{threading}, server {server}, {client} connections"
    how = {"keep_alive": SERVERS[server], "connection": CLIENTS[client]}
    own = {"threading": threading, "threads": THREADS[threading]}
    return _rung(words + (", closed loop" if more else ""), own, how, more)


# Of twelve combinations those that can differ: whoever closes, the connection is new.
FRACTION = (
    *product(THREADINGS, (("closes", "new"), ("keeps", "reused"))),
    ("thread", ("keeps", "new")),
    ("thread", ("closes", "reused")),
)
CROSSED = {f"{how}_{s}_{c}": _crossed(how, s, c) for how, (s, c) in FRACTION}
FULL_LOAD = {f"full_{how}_{s}_{c}": _crossed(how, s, c, **FULL) for how, (s, c) in FRACTION[:6]}
# Both load tests of the study, and the second one on a server that suits it. Each has its match
# among those above: the same server and the same connections, with the load from the lab.
OF_THE_LAB = {
    f"naive_{server}_{client}": f"thread_{server}_{client}"
    for server, client in (("closes", "new"), ("closes", "reused"), ("keeps", "reused"))
}
# What each does with connections.
LOAD_TESTS = {
    "naive_closes_new": "a connection per request",
    "naive_closes_reused": "a connection kept, which the server closes",
    "naive_keeps_reused": "a connection kept by both",
}
NAIVE = {
    name: CROSSED[own].model_copy(
        update={"label": f"{CROSSED[own].label}, naive client", "load_from": "naive_client"}
    )
    for name, own in OF_THE_LAB.items()
}
LOW: Mapping[str, Any] = {"load": "low"}
PARTS = {
    "low_new": _rung("low rate, a connection per request", LOW),
    "target_new": _rung("target rate, a connection per request"),
    "low_reused": _rung("low rate, reused connections", REUSED, LOW),
    "target_reused": _rung("target rate, reused connections", REUSED),
}
BACKLOGS, TIMES = (1, 16, 1024), (1, 2)
BACKLOG = {
    f"backlog_{room}_x{times}": _rung(
        f"backlog of {room}, {times} x the target rate", {"backlog": room, "times": times}
    )
    for room, times in product(BACKLOGS, TIMES)
}
RUNGS = {**PHASES, **CROSSED, **NAIVE, **FULL_LOAD, **PARTS, **BACKLOG}
SETS: dict[str, tuple[str, ...]] = {
    "phases": tuple(PHASES),
    "interaction": tuple(CROSSED),
    "saturation": tuple(FULL_LOAD),
    "parts": tuple(PARTS),
    "clients": (),
    "backlog": tuple(BACKLOG),
    "naive": (*OF_THE_LAB.values(), *NAIVE),
}


def users_rung(users: int) -> Rung:
    """Return the rung of a closed loop of so many users, with a thread and a connection each."""
    label = f"{users} user{'' if users == 1 else 's'}, a connection per request"
    return _rung(label, FULL, {"users": users})


def chosen(sets: Iterable[str], users: Iterable[int]) -> dict[str, Rung]:
    """Return the rungs of all sets, each once, in the order in which they stand above.

    Parameters
    ----------
    users : iterable of int
        Those of the set ``clients``.
    """
    wanted = {name for each in sets for name in SETS[each]}
    found = {name: rung for name, rung in RUNGS.items() if name in wanted}
    if "clients" in set(sets):
        found |= {f"users_{each}": users_rung(each) for each in sorted(set(users))}
    return found
