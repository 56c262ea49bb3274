"""The responses of the registry.

Those that are told are the lab's own counts if its clients download; with the load from inside,
they are the service's. A hundred downloads are too few for a p95 or p99.
"""

from __future__ import annotations

from perflab.recordings.responses import (
    CPU,
    MEMORY,
    PHASES,
    PROFILE,
    REQUESTS,
    beside,
    with_typical,
)

RESPONSES = (
    *beside(__file__),
    *with_typical(REQUESTS, "mean_ms", "p50_ms", "max_ms"),
    *PHASES,
    *CPU,
    *MEMORY,
    *PROFILE,
)
