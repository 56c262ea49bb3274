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
    Response(
        name="told_hung",
        title="requests that waited out their time-out, as the naive client counts",
        unit="requests", noun="hung as told", better="less",
    ),
    Response(
        name="told_reset", title="requests that were reset, as the naive client counts",
        unit="requests", noun="reset as told", better="less",
    ),
    Response(
        name="told_mean_ms", title="mean time of an answer, as the naive client counts", unit="ms",
        heading="mean ms, as told", noun="mean as told", better="less",
    ),
    Response(
        name="told_connect_ms", title="mean time to connect, as the naive client counts", unit="ms",
        noun="connecting as told", better="less",
    ),
)  # fmt: skip
# The lab's probes of /health while another generator loads the server.
PROBES = tuple(
    response.model_copy(
        update={
            "name": f"probe_{response.name}",
            "title": f"{response.title} of /health",
            "noun": f"{response.noun} of /health",
            "typical": False,
        }
    )
    for response in REQUESTS
    if response.name in ("mean_ms", "p50_ms", "max_ms")
)
RESPONSES = (*COST, *TOLD, *PROBES, *REQUESTS, *PHASES, *CPU, *KERNEL, *CLIENT, *MEMORY, *PROFILE)
