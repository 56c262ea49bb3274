"""The responses of the LLM proxy."""

from __future__ import annotations

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
    beside,
)

RESPONSES = (
    *beside(__file__),
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
