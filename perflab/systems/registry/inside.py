"""The published load from inside: the service downloads from itself, and the lab probes it.

The clients are coroutines of the event loop that serves them (``POST /health/performance/workload``
of the service). Only that generator counts them. The lab sends a few probes of ``/health`` from
outside; their response times show how long the loop was held up.
"""

from __future__ import annotations

from perflab.instruments import STANDARD, Instrument, OtherLoad, Requests
from perflab.load.workload import OpenLoop, Request, Stage, Workload
from perflab.systems.registry.counts import RegistryCounts

START = "/health/performance/workload"
# The published model; in paths its slash is an underscore.
MODEL = "arnir0/Tiny-LLM"
PROBED = "/health"
PROBES_PER_S = 5.0
# The counts of the service's own generator; see services/registry/README.md.
TOLD = {
    "told_succeeded": "successful",
    "told_total_duration_s": "total_duration_s",
    "told_mean_ms": "mean_ms",
}
CUT_OFF = {
    "told_total_duration_s": ("timed_out", "failed_otherwise"),
    "told_mean_ms": ("timed_out",),
}


def probes(node: str, length_s: float, timeout_s: float) -> Workload:
    """Return probes of the service's health over ``length_s``, with a time-out of each."""
    return Workload(
        request=Request(node=node, path=PROBED),
        arrivals=OpenLoop(stages=(Stage(rate=PROBES_PER_S, duration_s=length_s),)),
        timeout_s=min(timeout_s, 3_600.0),
        may_time_out=True,
    )


def instruments(
    node: str, *, clients: int, timeout_s: int, longest_s: float
) -> tuple[Instrument, ...]:
    """Return the instruments of a trial with the load from inside.

    ``clients`` download at one instant, and give up after ``timeout_s``; the trial fails after
    ``longest_s``.
    """
    body = {"num_clients": clients, "model_id": MODEL, "duration_seconds": timeout_s}
    return (
        Requests(prefix="probe_", steady=False, phases=False),
        *(instrument for instrument in STANDARD if not isinstance(instrument, Requests)),
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
