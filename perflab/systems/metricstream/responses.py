"""The responses of MetricStream."""

from __future__ import annotations

from perflab.recordings import Response
from perflab.recordings.responses import CLIENT, CPU, MEMORY, PHASES, PROFILE, REQUESTS

COST = (
    Response(
        name="success_share", title="answered within the time-out, of all that was planned",
        heading="success", noun="success", better="more", typical=True,
    ),
    Response(
        name="server_cpu_us_per_request", title="the server's CPU time for a request", unit="us",
        heading="server us/request", noun="server CPU per request", better="less", typical=True,
    ),
    Response(
        name="part_*_ms", title="mean time of * on the client's clock", unit="ms",
        noun="time of *", better="less",
    ),
    Response(
        name="part_*_share", title="share of * in a request on the client's clock",
        noun="share of *",
    ),
)  # fmt: skip
KERNEL = (
    Response(
        name="accept_queue_max_*", title="most connections that * had not accepted yet",
        unit="connections", noun="accept queue of *", better="less",
    ),
    Response(
        name="accept_drops_*", title="connections that found no room at *", unit="connections",
        noun="dropped at *", better="less",
    ),
)  # fmt: skip
# The naive client's own counts; the lab vouches for none of them.
TOLD = (
    Response(
        name="told_success_rate",
        title="achieved rate over target rate, as the naive client counts",
        heading="success, as told", noun="success as told", better="more",
    ),
    Response(
        name="told_achieved_rps", title="answers a second, as the naive client counts",
        unit="requests/s", heading="requests/s, as told", noun="rate as told", better="more",
    ),
)  # fmt: skip
RESPONSES = (*COST, *TOLD, *REQUESTS, *PHASES, *CPU, *KERNEL, *CLIENT, *MEMORY, *PROFILE)
