"""The responses of variants; the names of CPU and memory do not depend on a variant's name."""

from __future__ import annotations

from perflab.recordings.responses import (
    CLIENT,
    CPU,
    MEMORY,
    NAMED_REQUESTS,
    REQUESTS,
    beside,
    with_typical,
)

RESPONSES = (
    *REQUESTS,
    *beside(__file__),
    *NAMED_REQUESTS,
    *with_typical(CPU),
    *MEMORY,
    *CLIENT,
)
