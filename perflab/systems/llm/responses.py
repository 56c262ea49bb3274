"""The responses of the LLM proxy."""

from __future__ import annotations

from perflab.recordings import Response
from perflab.recordings.responses import (
    CAPACITY,
    CLIENT,
    CPU,
    MEMORY,
    PHASES,
    PROFILE,
    REQUESTS,
    STOPS,
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
)  # fmt: skip
BROKEN_OFF = (
    Response(
        name="requests_begun", title="requests begun when the failures ended the load",
        unit="requests", noun="requests at the stop",
    ),
    Response(
        name="failure_share_broken_off", title="failure rate if what was under way had failed",
        heading="failure rate with broken off", noun="failure rate", typical=True,
    ),
)  # fmt: skip
RESPONSES = (
    *COST,
    *CAPACITY,
    *STOPS,
    *BROKEN_OFF,
    *STREAMS,
    *REQUESTS,
    *PHASES,
    *CPU,
    *CLIENT,
    *MEMORY,
    *PROFILE,
)
