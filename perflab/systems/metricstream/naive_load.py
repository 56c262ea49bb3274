"""The study's own load tests, built anew, on the server; meanwhile the lab probes it.

What becomes of their requests is told by the service ``naive_client`` alone, a bad load generator
on purpose (services/naive_client/README.md says in what). The lab's own load are few looks at
``/health``, so that a trial holds requests of the lab's own, and the server's CPU while it lasts.
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
# What the service takes at least, by its own settings.
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
# Of answered requests alone: those that hung are left out of it.
CUT_OFF = {"told_mean_ms": ("hung",)}
REMARK = (
    "with the load from the naive client its own numbers are told (told_*): it counts its warm-up, "
    "leaves out what hung, and calls success what it achieved of its target; the lab vouches for "
    "none of them"
)


@dataclass(frozen=True)
class Asked:
    """A load that the naive client is asked for: posts of one metric to the node ``server``.

    ``rate`` is of all ``clients`` together, a second; with ``reuses`` each keeps one connection.
    """

    server: str
    clients: int
    rate: float
    length_s: float
    reuses: bool
    timeout_s: float


def node(asked: Asked) -> Node:
    """Return the naive client, wired to the server, with the load that it sends when it is told.

    On four cores and more the role of a link keeps the two apart.
    """
    settings: dict[str, Value] = {
        "clients": asked.clients,
        "rate": asked.rate,
        "duration_s": asked.length_s,
        "connection": "persistent" if asked.reuses else "per_request",
        "timeout_ms": max(SHORTEST_TIMEOUT_MS, round(1000 * asked.timeout_s)),
    }
    needs = {"target": asked.server}
    return Node(name=NODE, service=NODE, settings=settings, needs=needs, placement="link")


def probes(asked: Asked, warmup_s: float) -> Workload:
    """Return looks at the server's health for as long as the naive client begins requests.

    Parameters
    ----------
    warmup_s : float
        Recorded apart: of what comes after it, the server's CPU is told.
    """
    rate = max(PROBES_PER_S, FEWEST_PROBES / (asked.length_s - warmup_s))
    stage = Stage(rate=rate, duration_s=asked.length_s)
    return Workload(
        request=Request(node=asked.server, path=PROBED),
        arrivals=OpenLoop(stages=(stage,), warmup_s=warmup_s),
        timeout_s=asked.timeout_s,
        may_time_out=True,
    )


def instruments(asked: Asked) -> tuple[Instrument, ...]:
    """Return what looks at a trial of the naive client's load; none counts what the server took."""
    return (
        Requests(prefix="probe_", steady=False, phases=False),
        *(each for each in STANDARD if not isinstance(each, Requests)),
        OtherLoad(
            node=NODE,
            path=START,
            columns=TOLD,
            at_least_if=CUT_OFF,
            poll_s=0.25,
            longest_s=asked.length_s + asked.timeout_s + SPARE_S,
        ),
    )
