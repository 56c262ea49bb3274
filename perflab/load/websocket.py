"""WebSocket connections for load: every message with the instant its bytes were read.

One rule holds, with compression and without: a message came at the instant at which the loop handed
over the read that completed it. All messages of one read share it, so that none is charged with
what the client spent on those before it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence

from perflab.load.dialled import kind_of
from perflab.load.outcome import ERRORS
from perflab.load.targets import addresses, refuse_foreign, split
from perflab.load.websocket_call import Call, Listener, WebSocket, WebSocketError
from perflab.load.websocket_frames import open_frames

# The handshake's own time-out comes first: it closes the connection.
HANDSHAKE_ENDS_S = 0.5

__all__ = ["Listener", "WebSocket", "WebSocketError", "connect"]


async def connect(
    url: str,
    listener: Listener,
    *,
    deflate: bool = False,
    timeout_s: float = 10.0,
    headers: Mapping[str, str] | None = None,
    allowed: Sequence[str] = (),
) -> WebSocket:
    """Open a WebSocket (RFC 6455).

    Raises
    ------
    TargetRefused
        The host is neither loopback nor allowed; nothing was sent.
    WebSocketError
        Refused, timed out, or not agreed to; ``kind`` says which.
    """
    refuse_foreign(url, allowed)
    origin, _ = split(url)
    tls = ssl.create_default_context() if origin.encrypted else None
    try:
        async with asyncio.timeout(timeout_s + HANDSHAKE_ENDS_S):
            _, address = addresses(origin)[0]
            call = Call(
                url,
                address,
                tls,
                listener,
                dict(headers or {}),
                deflate=deflate,
                timeout_s=timeout_s,
            )
            return await open_frames(call)
    except WebSocketError:
        raise
    except TimeoutError:
        raise WebSocketError("timeout", f"not open within {timeout_s:g} s") from None
    except ConnectionResetError as error:
        raise WebSocketError("reset", str(error)) from None
    except OSError as error:
        raise WebSocketError(ERRORS[kind_of(error, "connect")], str(error)) from None
