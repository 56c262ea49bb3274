"""The requests of a trial of posts, with planted parts; no service, no load."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.support.synthetic import HOUR_NS
from tests.systems.planned import requests_of

US = 1_000
# Connect, send, wait, receive and close of every planted request, in us.
PLANTED_US = (40, 10, 30, 15, 5)
NUMBER = 50


def posts(connected: bool = True) -> pd.DataFrame:
    """Return the requests of a trial; on reused connections nothing is connected or closed."""
    connect, send, wait, receive, close = (part_us * US for part_us in PLANTED_US)
    connect, close = (connect, close) if connected else (0, 0)
    started = HOUR_NS + np.arange(NUMBER, dtype=np.int64) * 1_000_000
    sent = started + connect + send
    return requests_of(
        started, sent + wait + receive, sent_ns=sent, first_byte_ns=sent + wait,
        connect_ns=np.full(NUMBER, connect), close_ns=np.full(NUMBER, close),
        status=np.full(NUMBER, 202, np.int16), bytes=np.full(NUMBER, 15),
    )  # fmt: skip
