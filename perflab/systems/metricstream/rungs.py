"""The rungs, published phases and further ones, and the published claims as contrasts.

Only directions are compared, no sizes: the study defines neither its success nor the load of each
phase, and it never measured the effect of keep-alive that it expects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from itertools import product, starmap
from typing import Any, Literal

from perflab.load.workload import Reuse
from perflab.recordings import Contrast, ContrastPair, published_value
from perflab.recordings.published_results import Direction
from perflab.trials.ladders import RUNG, Labelled, Row, between, having, of_sets

Threading = Literal["thread", "producer_consumer", "pool", "epoll"]
Set = Literal["phases", "interaction", "saturation", "clients", "naive"]
LoadFrom = Literal["lab", "naive_client"]
# Before the first phase one worker answered one request at a time.
SEQUENTIAL = {"threading": "pool", "threads": 1}


class Rung(Labelled):
    """A server and the load it gets.

    ``load`` is ``target`` (the target rate) or ``closed``: ``users`` without think time (0: as many
    as the run has clients). A request holds ``metrics``. ``load_from``: the lab's clients post, or
    the load tests of the study, built anew.
    """

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
    merged = {name: value for change in changes for name, value in change.items()}
    return Rung(label=label, **merged)


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
chosen = partial(of_sets, RUNGS, SETS)
STUDY = "metricstream"
OTHERS, PHASES_TABLE = "other published figures", "phases table"
PHASE_7 = "expected, phase 7"
SUCCESS, CPU, THROUGHPUT = "success_share", "server_cpu_us_per_request", "throughput_rps"
CORES, TOLD_SUCCESS = "cpu_share_metricstream", "told_success_rate"
LOCK, PARSE, MEAN = "phase_lock_p50_ms", "phase_parse_p50_ms", "mean_ms"
WORDS = {
    SUCCESS: "success",
    CPU: "server CPU",
    THROUGHPUT: "throughput",
    LOCK: "lock",
    PARSE: "parse",
    MEAN: "mean",
    CORES: "server's cores",
    TOLD_SUCCESS: "success as told",
}
# A claim about the cost of a request is tested on both and says which.
SEEN_IN = {CPU: "the server's CPU", MEAN: "the mean latency"}
TABLE = "metricstream study, phases table"
EXPECTED = "metricstream study, phase 7 (expected there, never measured)"
# The direction of success in each phase; phases 4 and 5 have no published figure.
SUCCEEDED: dict[str, tuple[Direction | None, str]] = {
    "phase_1": ("greater", "a thread per request raises success (81% to 88%)"),
    "phase_2": ("greater", "producer and consumers raise success (59% to 66%)"),
    "phase_3": (None, "a linear parser instead of a quadratic one (80.2%, one figure only)"),
    "phase_4": (None, "a lock-free ring instead of two mutexes (no success is published)"),
    "phase_5": (None, "a mutex per client instead of two for all (no success is published)"),
    "phase_6": ("none", "a pool of 16 leaves success as it is (50.69% to 51.34%)"),
    "phase_7": (None, "keep-alive instead of a connection for each request (a level is claimed)"),
}
SECOND_TEST = "metricstream study, second load test"
# A pool against threads where each request connects, and where connections are kept.
NEW, KEPT = ("pool_closes_new", "thread_closes_new"), ("pool_keeps_reused", "thread_keeps_reused")
_between = partial(between, words=WORDS)


def contrasts(rungs: Collection[str], target_rate: float) -> list[Contrast]:
    """Return every contrast whose rungs the run has.

    A level is claimed at the published target rate, and at no other.
    """
    limits = [_lock_wait(), *(_with_keep_alive() if target_rate == published_rate() else ())]
    rows = [*_phases(), *_at_target_rate(), *_saturated(), *_naive()]
    pools = [_pool_with_keep_alive(response) for response in SEEN_IN]
    of_ratios = [*map(_kept_alive, THREADINGS), *starmap(_between, rows), *pools]
    return having([*of_ratios, *limits], rungs)


def published_rate() -> float:
    """Return the target rate of the study."""
    return published_value(STUDY, OTHERS, "load test", "target_rate")


def _lock_wait() -> Contrast:
    """Return phase 4: a wait of 0 on both sides leaves nothing to remove."""
    most_us = published_value(
        STUDY, PHASES_TABLE, "phase 4: lock-free ring buffer", "lock_wait_high"
    )
    return Contrast(
        name="phase_3 against phase_4, lock",
        claim="there is no wait for locks that a lock-free ring could remove (0 to 1 us)",
        response=LOCK,
        scale="difference",
        numerator={RUNG: "phase_3"},
        denominator={RUNG: "phase_4"},
        published_direction="smaller",
        limit=most_us / 1e3,
        source=f"{TABLE}, phase 4",
    )


def _with_keep_alive() -> Iterator[Contrast]:
    success, mean_ms = (
        published_value(STUDY, PHASE_7, "keep-alive", measure)
        for measure in ("success", "mean_latency")
    )
    for response, direction, limit, claim in (
        (SUCCESS, "greater", success / 100, f"with keep-alive more than {success:g}% succeed"),
        (MEAN, "smaller", mean_ms, f"with keep-alive the mean latency is below {mean_ms:g} ms"),
    ):
        yield Contrast(
            name=f"phase_7, {WORDS[response]}",
            claim=claim,
            response=response,
            scale="level",
            numerator={RUNG: "phase_7"},
            denominator={},
            published_direction=direction,
            limit=limit,
            source=EXPECTED,
        )


def _phases() -> Iterator[Row]:
    for phase, (direction, claim) in SUCCEEDED.items():
        yield (phase, BEFORE[phase]), SUCCESS, direction, claim, TABLE
    yield from (
        (("long_linear", "long_quadratic"), PARSE, "smaller",
         "a linear parser takes less than a quadratic one (a long body)", f"{TABLE}, phase 3"),
        (("phase_5", "phase_3"), MEAN, "smaller",
         "a mutex per client instead of two for all makes it faster (no figure)",
         f"{TABLE}, phase 5"),
        (("phase_7", "phase_6"), MEAN, None, "beyond the study: the mean latency with keep-alive",
         ""),
    )  # fmt: skip
    for phase in ("phase_6", "phase_7"):
        claim = f"beyond the study: CPU of the server for a request, {phase}"
        yield (phase, BEFORE[phase]), CPU, None, claim, ""


def _at_target_rate() -> Iterator[Row]:
    """Yield claims 1 and 2 at the target rate, seen in the server's CPU and the mean latency."""
    for response, measure in SEEN_IN.items():
        claim = f"while every request connects, a thread pool makes no difference to {measure}"
        yield NEW, response, "none", claim, "metricstream study, claim 2"
        claim = f"beyond the study: {measure} with a pool where connections are kept"
        yield KEPT, response, None, claim, ""
        for threading in THREADINGS:
            pair = (f"{threading}_closes_new", f"{threading}_keeps_reused")
            claim = f"setting connections up is what a request costs, seen in {measure}"
            source = "metricstream study, claim 1"
            yield pair, response, "greater", f"{claim} ({threading})", source
    yield from (
        (("thread_closes_reused", "thread_keeps_reused"), SUCCESS, "smaller",
         "who wants to reuse a connection that the server closes hangs", SECOND_TEST),
        (("thread_keeps_new", "thread_closes_new"), CPU, None,
         "beyond the study: keep-alive of the server alone, each request on a new connection", ""),
    )  # fmt: skip


def _pool_with_keep_alive(response: str) -> Contrast:
    """Return the interaction of pool and keep-alive."""
    claim = f"beyond the study: what a pool changes in {SEEN_IN[response]} is another with "
    pair = ContrastPair(numerator={"rung": NEW[0]}, denominator={"rung": NEW[1]})
    name = f"pool x keep-alive, {WORDS[response]}"
    contrast = _between(KEPT, response, None, f"{claim}keep-alive than without")
    return contrast.model_copy(update={"name": name, "interaction": pair})


def _kept_alive(threading: str) -> Contrast:
    """Return claim 3 as throughput of closed loops, which the client may limit."""
    low, high = (
        published_value(STUDY, PHASE_7, "keep-alive", f"throughput_ratio_{end}")
        for end in ("low", "high")
    )
    pair = (f"full_{threading}_keeps_reused", f"full_{threading}_closes_new")
    claim = f"keeping connections alive multiplies throughput by {low:g} to {high:g} ({threading})"
    source = "metricstream study, claim 3 (expected there, never measured)"
    contrast = _between(pair, THROUGHPUT, "greater", claim, source, low)
    return contrast.model_copy(update={"published_bound": "at least"})


def _saturated() -> Iterator[Row]:
    pair = ("full_pool_closes_new", "full_thread_closes_new")
    claim = "while every request connects, a thread pool makes no difference to throughput"
    yield pair, THROUGHPUT, "none", claim, "metricstream study, claim 2"


def _naive() -> Iterator[Row]:
    """Yield contrasts of the naive load: the second load test, and the server's CPU.

    The module ``rules`` judges by its own rule which side was the limit, because the rates of
    the two generators are different counts.
    """
    claim = "a client that keeps its connection hangs where the server closes it"
    pair = ("naive_closes_reused", "naive_keeps_reused")
    yield pair, TOLD_SUCCESS, "smaller", claim, SECOND_TEST
    beyond = "beyond the study: the server's CPU with the naive client's load and with the lab's"
    for naive, of_lab in OF_THE_LAB.items():
        yield (naive, of_lab), CORES, None, f"{beyond} ({LOAD_TESTS[naive]})", ""
