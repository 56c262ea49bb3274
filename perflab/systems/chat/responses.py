"""The responses of the chat service; its own are those of ``responses.csv``.

Deliveries of messages are its measure; its requests are logins, except in the codec microbenchmark.
"""

from __future__ import annotations

from pathlib import Path

from perflab.recordings import Response, Steady
from perflab.recordings.responses import CPU, MEMORY, PHASES, PROFILE, REQUESTS
from perflab.recordings.typed_rows import rows_of

STEADY = Steady(kind="delivery")
# Trials begin with minutes of joining, so the CPU of the plateau counts. The service reports the
# time of 1000 operations in ms: that number is the us of one.
OWN = rows_of(Path(__file__).with_suffix(".csv"), Response)
RESPONSES = (
    *OWN,
    *REQUESTS,
    *PHASES,
    *(share.model_copy(update={"typical": False}) for share in CPU),
    *MEMORY,
    *PROFILE,
)
