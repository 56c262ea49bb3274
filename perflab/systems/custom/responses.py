"""The responses of variants; the names of CPU and memory do not depend on a variant's name."""

from __future__ import annotations

from pathlib import Path

from perflab.recordings import Response
from perflab.recordings.responses import CLIENT, CPU, MEMORY, NAMED_REQUESTS, REQUESTS
from perflab.recordings.typed_rows import rows_of

OWN = rows_of(Path(__file__).with_suffix(".csv"), Response)
RESPONSES = (
    *REQUESTS,
    *OWN,
    *NAMED_REQUESTS,
    *(response.model_copy(update={"typical": False}) for response in CPU),
    *MEMORY,
    *CLIENT,
)
