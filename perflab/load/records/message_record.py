"""The record of streams: one row of 26 bytes per message sent or received.

Kinds of messages are a script's own words. A worker packs each kind as a number, in the order of
their first use, and writes the words to a file of their own.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from perflab.load.records.columns import words
from perflab.load.records.names import KIND_NAMES, names_in, write_names
from perflab.load.records.spool import Spool, rows_in

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
pack = struct.Struct("<qqiibb").pack
DIRECTIONS = ("sent", "received")
SENT, RECEIVED = 0, 1
# The lab counts connections by these kinds, if a script notes them: opened, ended by the user, and
# ended otherwise.
CONNECTED, LEFT, CUT = "connected", "left", "cut"
# The kind for the bytes that a connection read from the network, heads of frames included.
WIRE = "wire"
OF_CONNECTIONS = (CONNECTED, LEFT, CUT, WIRE)
MOST_KINDS = 128
FILE = "messages.rows"


class MessageRecorder:
    """Packs messages into rows for a spool (``messages.rows``).

    ``at_ns`` of a sent message is the instant at which sending began, before encoding: less the
    planned instant, that is the client's lateness. ``at_ns`` of a received message is the instant
    that its listener got. ``key`` matches sent and received messages: by custom it is the planned
    instant of the sending. ``kind`` is a word of the script's own; a message without one gives no
    time. The words go to ``messages.names``.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._spool = Spool(folder / FILE)
        self._folder = folder
        self._kinds: dict[str, int] = {}

    def add(
        self, at_ns: int, user: int, direction: int, size: int, key: int = 0, kind: str = ""
    ) -> None:
        """Record a message; raise ValueError at too many kinds."""
        try:
            number = self._kinds[kind]
        except KeyError:
            number = self._number(kind)
        self._spool.add(pack(at_ns, key, user, size, number, direction))

    def _number(self, kind: str) -> int:
        if len(self._kinds) == MOST_KINDS:
            raise ValueError(
                f"{kind!r} is one kind of messages too many, for at most {MOST_KINDS} are allowed: "
                "use the key for what differs between messages of one kind"
            )
        return self._kinds.setdefault(kind, len(self._kinds))

    def close(self) -> None:
        """Write everything; raise OSError if the disk did not take it."""
        self._spool.close()
        write_names(self._folder, KIND_NAMES, self._kinds)


def messages(folder: Path, worker: int) -> pd.DataFrame:
    """Return the messages of a worker, in the order of their record, with words for kinds."""
    import pandas as pd

    packed = rows_in(folder / FILE, ROW)
    return pd.DataFrame(
        {
            "worker": np.full(len(packed), worker, dtype=np.int16),
            "direction": words(DIRECTIONS, packed["direction"]),
            **{name: packed[name] for name in ("at_ns", "user", "bytes", "key")},
            "kind": words(names_in(folder, KIND_NAMES), packed["kind"]),
        }
    )
