"""The functions of the chat service that a profile watches, as patterns of py-spy's frames.

C functions have no frames: their time is in the Python function that called them, zlib's in the
compressing step and a socket's in the write. A serializer that is C altogether (orjson, msgspec,
msgpack) is in its caller, so that what is watched for every codec is that caller.
"""

from __future__ import annotations

from collections.abc import Mapping

# The task that empties a connection's queue holds everything down to the socket, with each of
# Uvicorn's two implementations. What a full socket left over is written by the event loop.
# (uvloop writes in C at the end of its turn: that part would not be seen here.)
_WRITING = r"^Connection\.write \((?:.*/)?hub\.py\)$"
_LEFT_OVER = r"^_SelectorSocketTransport\._write_\w+ \((?:.*/)?selector_events\.py\)$"
_DELIVERING = r"^Hub\._deliver \((?:.*/)?hub\.py\)$"
_ANSWERING = r"^Coder\.encode \((?:.*/)?codecs\.py\)$"

SEND = f"{_WRITING}|{_LEFT_OVER}"
# Both implementations share the extension of the package websockets.
DEFLATE = r"^PerMessageDeflate\.encode \((?:.*/)?permessage_deflate\.py\)$"
SERIALIZE = f"{_DELIVERING}|{_ANSWERING}"


def watch(deflate: str) -> Mapping[str, str]:
    """Return what to watch where ``deflate`` is on or off, by short name.

    ``send``: writing messages to WebSockets, down to the sockets. ``deflate``, where it is on: the
    compressing within that. ``serialize``: making frames, and putting them into the receivers'
    queues.
    """
    always = {"send": SEND, "serialize": SERIALIZE}
    return {**always, "deflate": DEFLATE} if deflate == "on" else always
