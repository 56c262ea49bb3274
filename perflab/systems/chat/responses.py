"""The responses of the chat service; its own are those of ``responses.csv``.

Deliveries of messages are its measure; its requests are logins, except in the codec microbenchmark.
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

# Trials begin with minutes of joining, so the CPU of the plateau counts. The service reports the
# time of 1000 operations in ms: that number is the us of one.
RESPONSES = (
    *beside(__file__),
    *REQUESTS,
    *PHASES,
    *with_typical(CPU),
    *MEMORY,
    *PROFILE,
)
