"""The published load from inside: the service downloads from itself, and the lab probes it.

The clients are coroutines of the event loop that serves them (``POST /health/performance/workload``
of the service). What becomes of them is told by that generator alone; the lab's own load are few
looks at ``/health`` from outside, whose response times show how long the loop was held up.
"""

from __future__ import annotations

from perflab.instruments import STANDARD, Instrument, OtherLoad, Requests
from perflab.load.workload import OpenLoop, Request, Stage, Workload
from perflab.systems.registry.counts import RegistryCounts

START = "/health/performance/workload"
# As published; in paths its slash is an underscore.
MODEL = "arnir0/Tiny-LLM"
PROBED = "/health"
PROBES_PER_S = 5.0
# What the service's own generator tells of its downloads; see services/registry/README.md.
TOLD = {
    "told_succeeded": "successful",
    "told_total_duration_s": "total_duration_s",
    "told_mean_ms": "mean_ms",
}
CUT_OFF = {
    "told_total_duration_s": ("timed_out", "failed_otherwise"),
    "told_mean_ms": ("timed_out",),
}


def probes(node: str, length_s: float, patience_s: float) -> Workload:
    """Return looks at the service's health over ``length_s``, each with so much patience."""
    return Workload(
        request=Request(node=node, path=PROBED),
        arrivals=OpenLoop(stages=(Stage(rate=PROBES_PER_S, duration_s=length_s),)),
        timeout_s=min(patience_s, 3_600.0),
        may_time_out=True,
    )


def instruments(
    node: str, *, clients: int, timeout_s: int, longest_s: float
) -> tuple[Instrument, ...]:
    """Return what looks at a trial whose load comes from inside.

    ``clients`` download at one instant, and give up after ``timeout_s``; the trial fails after
    ``longest_s``.
    """
    body = {"num_clients": clients, "model_id": MODEL, "duration_seconds": timeout_s}
    return (
        Requests(prefix="probe_", steady=False, phases=False),
        *(each for each in STANDARD if not isinstance(each, Requests)),
        RegistryCounts(node=node, downloads=False),
        OtherLoad(
            node=node,
            path=START,
            body=body,
            columns=TOLD,
            at_least_if=CUT_OFF,
            requests="requests",
            longest_s=longest_s,
        ),
    )
