"""The study's own load tests, built anew; meanwhile the lab probes the server.

Only the service ``naive_client`` counts their requests. It is a bad load generator on purpose
(services/naive_client/README.md says how). The lab sends a few probes of ``/health``, so that a
trial has requests of the lab's own, and the server's CPU in the meantime.
"""

from __future__ import annotations

from dataclasses import dataclass

from perflab.instruments import STANDARD, Instrument, OtherLoad, Requests
from perflab.load.workload import OpenLoop, Request, Stage, Workload
from perflab.stacks.plan import Node
from perflab.stacks.spec import Value

NODE = "naive_client"
START = "/load"
PROBED = "/health"
PROBES_PER_S, FEWEST_PROBES = 20.0, 12
# The least that the service's settings allow.
SHORTEST_TIMEOUT_MS = 10
# Threads, connections and the answer with the results need a moment beside the load.
SPARE_S = 60.0
TOLD = {
    "told_success_rate": "success_rate",
    "told_achieved_rps": "achieved_rate",
    "told_hung": "hung",
    "told_reset": "errors.reset",
    "told_mean_ms": "mean_ms",
    "told_connect_ms": "connect_ms",
}
# The mean leaves out requests that hung, so it is a lower bound if any did.
CUT_OFF = {"told_mean_ms": ("hung",)}
REMARK = (
    "with the load from the naive client its own numbers are told (told_*): it counts its warm-up, "
    "leaves out what hung, and calls success what it achieved of its target; the lab vouches for "
    "none of them"
)


@dataclass(frozen=True)
class NaiveLoad:
    """A load of the naive client: posts of one metric to the node ``server``.

    ``rate`` is requests a second of all ``clients`` together; with ``reuses`` each client keeps one
    connection.
    """

    server: str
    clients: int
    rate: float
    length_s: float
    reuses: bool
    timeout_s: float


def node(load: NaiveLoad) -> Node:
    """Return the naive client with its load, wired to the server.

    On four cores and more the placement of a link keeps client and server on different cores.
    """
    settings: dict[str, Value] = {
        "clients": load.clients,
        "rate": load.rate,
        "duration_s": load.length_s,
        "connection": "persistent" if load.reuses else "per_request",
        "timeout_ms": max(SHORTEST_TIMEOUT_MS, round(1000 * load.timeout_s)),
    }
    needs = {"target": load.server}
    return Node(name=NODE, service=NODE, settings=settings, needs=needs, placement="link")


def probes(load: NaiveLoad, warmup_s: float) -> Workload:
    """Return probes of the server's health for as long as the naive client begins requests.

    The server's CPU is measured after the first ``warmup_s`` seconds.
    """
    rate = max(PROBES_PER_S, FEWEST_PROBES / (load.length_s - warmup_s))
    stage = Stage(rate=rate, duration_s=load.length_s)
    return Workload(
        request=Request(node=load.server, path=PROBED),
        arrivals=OpenLoop(stages=(stage,), warmup_s=warmup_s),
        timeout_s=load.timeout_s,
        may_time_out=True,
    )


def instruments(load: NaiveLoad) -> tuple[Instrument, ...]:
    """Return the instruments of a trial with the naive client's load."""
    return (
        Requests(prefix="probe_", steady=False, phases=False),
        *(instrument for instrument in STANDARD if not isinstance(instrument, Requests)),
        OtherLoad(
            node=NODE,
            path=START,
            columns=TOLD,
            at_least_if=CUT_OFF,
            poll_s=0.25,
            longest_s=load.length_s + load.timeout_s + SPARE_S,
        ),
    )
