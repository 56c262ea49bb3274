"""The record of streams: one row of 26 bytes per message sent or received.

Server-sent events will use the same rows; their client comes with its own experiment.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perflab.load.columns import Spool, words

if TYPE_CHECKING:
    import pandas as pd

ROW = np.dtype(
    [
        ("at_ns", "<i8"),
        ("key", "<i8"),
        ("user", "<i4"),
        ("bytes", "<i4"),
        ("kind", "i1"),
        ("direction", "i1"),
    ]
)
PACK = struct.Struct("<qqiibb")
DIRECTIONS = ("sent", "received")
SENT, RECEIVED = 0, 1
# What the lab knows to judge; 0 is any other message of a script.
KINDS = (
    "", "send", "delivery", "ack", "ping", "pong", "join", "leave", "connected", "left", "cut",
    "error",
)  # fmt: skip
CODES = {kind: code for code, kind in enumerate(KINDS)}
ROWS_PER_BUFFER = 8192


class MessageRecorder:
    """Packs messages into rows; full buffers go to a spool (``messages.rows``).

    ``at_ns`` of what was sent is the instant at which it was taken up, before it was encoded: less
    the planned instant that is the client's lateness. Of what was received it is the instant that
    a listener is given. ``key`` matches what was sent to what was delivered: by custom the instant
    for which the sending was planned. ``kind`` is a place in ``KINDS``, or a number of the script's
    own.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._spool = Spool(folder / "messages.rows")
        self._renew()

    def _renew(self) -> None:
        self._buffer = bytearray(ROW.itemsize * ROWS_PER_BUFFER)
        self._used = 0

    def add(
        self, at_ns: int, user: int, direction: int, size: int, key: int = 0, kind: int = 0
    ) -> None:
        """Record a message; raises OSError when an earlier buffer could not be written."""
        PACK.pack_into(self._buffer, self._used, at_ns, key, user, size, kind, direction)
        self._used += 26
        if self._used == len(self._buffer):
            self._flush()

    def _flush(self) -> None:
        full = memoryview(self._buffer)[: self._used]
        self._renew()
        self._spool.put(full)

    def close(self) -> None:
        """Write everything; raises OSError when the disk did not take it."""
        self._flush()
        self._spool.close()


def messages(folder: Path, worker: int) -> pd.DataFrame:
    """Return the messages of a worker, in the order they were noted."""
    import pandas as pd

    path = folder / "messages.rows"
    found = np.fromfile(path, dtype=ROW) if path.exists() else np.empty(0, dtype=ROW)
    return pd.DataFrame(
        {
            "worker": np.full(len(found), worker, dtype=np.int16),
            "direction": words(DIRECTIONS, found["direction"]),
            **{name: found[name] for name in ("at_ns", "user", "bytes", "key", "kind")},
        }
    )
