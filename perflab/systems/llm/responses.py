"""The numbers of the LLM proxy's trials that can be compared."""

from __future__ import annotations

from perflab.recordings import Response
from perflab.recordings.responses import (
    CLIENT,
    CPU,
    MEMORY,
    PHASES,
    PROFILE,
    REQUESTS,
    STREAMS,
)

COST = (
    Response(
        name="success_share", title="answered in full, of all that was planned",
        heading="success", noun="success", better="more", typical=True,
    ),
    Response(
        name="server_cpu_us_per_answer", title="the proxy's CPU time for an answer", unit="us",
        heading="proxy us/answer", noun="proxy CPU per answer", better="less", typical=True,
    ),
    Response(
        name="server_cpu_us_per_chunk", title="the proxy's CPU time for a chunk", unit="us",
        heading="proxy us/chunk", noun="proxy CPU per chunk", better="less", typical=True,
    ),
    Response(
        name="streams_in_flight_mean", title="requests under way, mean over time",
        unit="requests", heading="under way", noun="requests under way", typical=True,
    ),
    Response(
        name="streams_in_flight_max", title="most requests under way at a time",
        unit="requests", noun="requests under way",
    ),
)  # fmt: skip
THRESHOLD = (
    Response(
        name="users_at_failure", title="users when the threshold of failures was reached",
        unit="users", heading="users at failure", noun="users at failure", better="more",
        typical=True,
    ),
    Response(
        name="stop_requests", title="requests begun when it was reached", unit="requests",
        noun="requests at failure",
    ),
    Response(
        name="stop_successes", title="successes when it was reached", unit="requests",
        heading="successes by then", noun="successes at failure", better="more", typical=True,
    ),
    Response(
        name="stop_failures", title="failures when it was reached", unit="requests",
        noun="failures",
    ),
    Response(
        name="stop_in_flight", title="requests under way when it was reached", unit="requests",
        heading="under way then", noun="requests broken off", typical=True,
    ),
    Response(
        name="stop_failure_share", title="failure rate if what was under way counts as failed",
        heading="failure rate with those", noun="failure rate", typical=True,
    ),
    Response(
        name="failures_after", title="failures after it was reached", unit="requests",
        noun="failures",
    ),
)  # fmt: skip
RESPONSES = (*COST, *THRESHOLD, *STREAMS, *REQUESTS, *PHASES, *CPU, *CLIENT, *MEMORY, *PROFILE)
