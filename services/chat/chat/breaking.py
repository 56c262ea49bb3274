"""Ending a WebSocket whose peer does nothing, which ASGI has no word for.

``receive`` is a method of Uvicorn's protocol object in all of its implementations. That object has
the transport, and the time it waits for the peer to close in turn: 10 s, up to three times over in
the older one, for which a user who is gone would still be counted.
"""

from __future__ import annotations

from typing import Any

from starlette.websockets import WebSocket

# How long a connection that is told to close may still read what was sent before.
GRACE_S = 2.0


def protocol_of(socket: WebSocket) -> Any:
    """Return Uvicorn's protocol object; None behind another server."""
    return getattr(socket._receive, "__self__", None)


def wait_briefly(socket: WebSocket) -> None:
    """Have the server wait no longer than the grace for a peer to close in turn."""
    protocol = protocol_of(socket)
    if hasattr(protocol, "close_timeout"):
        protocol.close_timeout = GRACE_S


def cut(socket: WebSocket) -> None:
    """Break a connection, whatever state it is in; once it is over this does nothing."""
    transport = getattr(protocol_of(socket), "transport", None)
    if transport is not None:
        transport.abort()
