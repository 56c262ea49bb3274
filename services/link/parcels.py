"""What travels through the link: bytes, and what can follow the last of them."""

from __future__ import annotations

from enum import Enum


class Mark(Enum):
    """What can follow the last bytes of a direction."""

    END = "no more bytes in this direction"
    CLOSE = "the connection is gone"


Parcel = bytes | memoryview | Mark
