"""The responses of the LLM proxy."""

from __future__ import annotations

from pathlib import Path

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
from perflab.recordings.typed_rows import rows_of

OWN = rows_of(Path(__file__).with_suffix(".csv"), Response)
RESPONSES = (
    *OWN,
    *CAPACITY,
    *STOPS,
    *STREAMS,
    *REQUESTS,
    *PHASES,
    *CPU,
    *CLIENT,
    *MEMORY,
    *PROFILE,
)
