"""The rungs: the published phases one by one, and further rungs that the study does not have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Literal

from perflab.load.workload import Reuse
from perflab.parameters import Parameters
from perflab.recordings import published_value

Threading = Literal["thread", "producer_consumer", "pool", "epoll"]
Set = Literal["phases", "interaction", "saturation", "clients", "naive"]
LoadFrom = Literal["lab", "naive_client"]
# Before the first phase one worker answered one request at a time.
SEQUENTIAL = {"threading": "pool", "threads": 1}


class Rung(Parameters):
    """A server and the load it gets.

    ``load`` is ``target`` (the target rate) or ``closed``: ``users`` without think time (0: as many
    as the run has clients). A request holds ``metrics``. ``load_from``: the lab's clients post, or
    the load tests of the study, built anew.
    """

    label: str
    threading: Threading = "thread"
    threads: int = 16
    keep_alive: Literal["off", "on"] = "off"
    parser: Literal["quadratic", "linear"] = "linear"
    store: Literal["double_mutex", "per_client", "ring"] = "per_client"
    connection: Reuse = "per_request"
    load: Literal["target", "closed"] = "target"
    users: int = 0
    metrics: int = 1
    load_from: LoadFrom = "lab"

    @property
    def settings(self) -> dict[str, str | int | float]:
        """Return the settings of the service."""
        names = ("threading", "threads", "keep_alive", "parser", "store")
        return {name: getattr(self, name) for name in names}


def _rung(label: str, *changes: Mapping[str, Any]) -> Rung:
    merged: dict[str, Any] = {"label": label}
    for change in changes:
        merged |= change
    return Rung.model_validate(merged)


OLD: Mapping[str, Any] = {"parser": "quadratic", "store": "double_mutex"}
QUEUED: Mapping[str, Any] = {"threading": "producer_consumer", "store": "double_mutex"}
POOL: Mapping[str, Any] = {"threading": "pool"}
# With this many metrics in a request the parser matters.
LONG: Mapping[str, Any] = {"metrics": 60}
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
    "long_quadratic": _rung("long body, quadratic parser", QUEUED, OLD, LONG),
    "long_linear": _rung("long body, linear parser", QUEUED, LONG),
}
# The rung that each phase is compared with; phases 4 and 5 are two other stores for phase 3.
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
# More epoll loops than cores would compete for them.
THREADS = {"thread": 16, "pool": 16, "epoll": 2}
SERVERS = {"closes": "off", "keeps": "on"}
CLIENTS: dict[str, Reuse] = {"new": "per_request", "reused": "keep_alive"}
FULL = {"load": "closed"}


def _crossed(threading: Threading, server: str, client: str, **load: Any) -> Rung:
    words = f"{threading}, server {server}, {client} connections"
    connections = {"keep_alive": SERVERS[server], "connection": CLIENTS[client]}
    threads = {"threading": threading, "threads": THREADS[threading]}
    return _rung(words + (", closed loop" if load else ""), threads, connections, load)


# The combinations that can differ: whichever side closes, the next connection is new.
FRACTION = (
    *product(THREADINGS, (("closes", "new"), ("keeps", "reused"))),
    ("thread", ("keeps", "new")),
    ("thread", ("closes", "reused")),
)
CROSSED = {
    f"{threading}_{server}_{client}": _crossed(threading, server, client)
    for threading, (server, client) in FRACTION
}
FULL_LOAD = {
    f"full_{threading}_{server}_{client}": _crossed(threading, server, client, **FULL)
    for threading, (server, client) in FRACTION[:6]
}
USERS = (1, 2, 4, 10, 25, 50, 100, 200)
OVER_CLIENTS = {
    f"users_{users}": _rung(
        f"{users} user{'' if users == 1 else 's'}, a connection per request", FULL, {"users": users}
    )
    for users in USERS
}
# Both load tests of the study, and the second one on a server that keeps connections. Each has its
# match above: the same server and the same connections, with the load from the lab.
OF_THE_LAB = {
    f"naive_{server}_{client}": f"thread_{server}_{client}"
    for server, client in (("closes", "new"), ("closes", "reused"), ("keeps", "reused"))
}
# How each load test uses connections.
LOAD_TESTS = {
    "naive_closes_new": "a connection per request",
    "naive_closes_reused": "a connection kept, which the server closes",
    "naive_keeps_reused": "a connection kept by both",
}
NAIVE = {
    name: CROSSED[match].model_copy(
        update={"label": f"{CROSSED[match].label}, naive client", "load_from": "naive_client"}
    )
    for name, match in OF_THE_LAB.items()
}
RUNGS = {**PHASES, **CROSSED, **NAIVE, **FULL_LOAD, **OVER_CLIENTS}
SETS: dict[str, tuple[str, ...]] = {
    "phases": tuple(PHASES),
    "interaction": tuple(CROSSED),
    "saturation": tuple(FULL_LOAD),
    "clients": tuple(OVER_CLIENTS),
    "naive": (*OF_THE_LAB.values(), *NAIVE),
}


def chosen(sets: Iterable[str]) -> dict[str, Rung]:
    """Return the rungs of all sets, each once, in the order of ``RUNGS``."""
    names = {name for chosen_set in sets for name in SETS[chosen_set]}
    return {name: rung for name, rung in RUNGS.items() if name in names}


STUDY = "metricstream"
OTHERS, PHASES_TABLE = "other published figures", "phases table"
# The published row of each parameter; the study states neither length nor time-out of its load.
PUBLISHED = {
    "clients": (OTHERS, "load test", "clients"),
    "target_rate": (OTHERS, "load test", "target_rate"),
}
LONG_TRIAL_S = 10.0


def published_settings() -> dict[str, Any]:
    """Return the parameters that the preset sets."""
    clients, rate = (published_value(STUDY, *place) for place in PUBLISHED.values())
    return {"clients": int(clients), "target_rate": rate, "duration_s": LONG_TRIAL_S}
