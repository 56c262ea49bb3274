"""The responses of the registry."""

from __future__ import annotations

from perflab.recordings import Response
from perflab.recordings.responses import CPU, MEMORY, PHASES, PROFILE, REQUESTS

DOWNLOADS = (
    Response(
        name="succeeded", title="downloads that came whole", unit="downloads",
        heading="succeeded", noun="successful downloads", better="more", typical=True,
    ),
    Response(
        name="total_duration_s", title="time until the last download was there", unit="s",
        heading="total s", noun="total duration", better="less", typical=True,
    ),
    Response(
        name="fastest_ms", title="time of the fastest download", unit="ms",
        heading="fastest ms", noun="fastest download", better="less",
    ),
)  # fmt: skip
# The lab's own counts if its clients download; with the load from inside, the service's.
TOLD = (
    Response(
        name="told_succeeded", title="downloads that came whole, as their own generator counts",
        unit="downloads", heading="succeeded, as told", noun="successful downloads as told",
        better="more",
    ),
    Response(
        name="told_total_duration_s",
        title="time until the last download was there, as their own generator counts", unit="s",
        heading="total s, as told", noun="total duration as told", better="less",
    ),
    Response(
        name="told_mean_ms", title="mean time of a download, as the service's own generator counts",
        unit="ms", heading="mean ms, as told", noun="mean as told", better="less",
    ),
)  # fmt: skip
COUNTS = (
    Response(
        name="longest_silence_ms", title="longest wait for an answer of the event loop",
        unit="ms", heading="silence ms", noun="silence of the event loop", better="less",
        typical=True,
    ),
    Response(
        name="most_waiting", title="most downloads that waited for a thread", unit="downloads",
        heading="most waiting", noun="waiting for a thread", better="less", typical=True,
    ),
    Response(
        name="store_connections_made", title="connections to the store that were opened",
        unit="connections", noun="connections opened", better="less",
    ),
    Response(
        name="store_connections_discarded",
        title="connections to the store that a full pool threw away", unit="connections",
        heading="discarded", noun="connections thrown away", better="less", typical=True,
    ),
)  # fmt: skip
TYPICAL_MEMORY = MEMORY[0].model_copy(
    update={"name": "memory_registry_bytes", "title": "memory of registry",
            "heading": "memory registry", "noun": "memory of registry", "typical": True}
)  # fmt: skip
# A hundred downloads are too few for a p95 or p99.
RESPONSES = (
    *DOWNLOADS,
    *TOLD,
   
    *(response.model_copy(update={"typical": response.name in ("mean_ms", "p50_ms", "max_ms")})
      for response in REQUESTS),
    *PHASES,
    *COUNTS,
    *CPU,
    TYPICAL_MEMORY,
    *MEMORY,
    *PROFILE,
)  # fmt: skip
