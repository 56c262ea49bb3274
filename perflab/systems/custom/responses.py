"""The responses of variants; the names of CPU and memory do not depend on a variant's name."""

from __future__ import annotations

from perflab.recordings import Response
from perflab.recordings.responses import CLIENT, CPU, FAILURES, MEMORY, NAMED_REQUESTS, REQUESTS

RESPONSES = (
    *REQUESTS,
    Response(
        name="service_cpu_us_per_request", title="CPU time per request", unit="us",
        heading="CPU us/request", noun="CPU per request", better="less", typical=True,
    ),
    Response(
        name="service_memory_bytes", title="memory after the load", unit="bytes",
        heading="memory, bytes", noun="memory", better="less", typical=True,
    ),
    Response(
        name=FAILURES, title="share of requests that failed", heading="failure share",
        noun="failures", better="less", typical=True,
    ),
    *NAMED_REQUESTS,
    *(response.model_copy(update={"typical": False}) for response in CPU),
    *MEMORY,
    *CLIENT,
)  # fmt: skip
