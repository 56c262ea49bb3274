"""The responses of the registry.

Those that are told are the lab's own counts if its clients download; with the load from inside,
they are the service's. A hundred downloads are too few for a p95 or p99.
"""

from __future__ import annotations

from pathlib import Path

from perflab.recordings import Response
from perflab.recordings.responses import CPU, MEMORY, PHASES, PROFILE, REQUESTS
from perflab.recordings.typed_rows import rows_of

OWN = rows_of(Path(__file__).with_suffix(".csv"), Response)
RESPONSES = (
    *OWN,
    *(
        response.model_copy(update={"typical": response.name in ("mean_ms", "p50_ms", "max_ms")})
        for response in REQUESTS
    ),
    *PHASES,
    *CPU,
    *MEMORY,
    *PROFILE,
)
