"""Whether a server speaks HTTP/2, asked before any load is sent."""

from __future__ import annotations

import socket
import ssl
from importlib.util import find_spec

from perflab.errors import LoadError
from perflab.load.targets import Origin, addresses, split
from perflab.load.workload import Workload

# The client's preface and an empty SETTINGS frame (RFC 9113, 3.4).
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
FRAME_HEAD_BYTES, SETTINGS = 9, 4
LONGEST_S = 5.0


def ask_for_http2(url: str, workload: Workload) -> None:
    """Refuse a load over HTTP/2 to a server that does not speak it.

    Over TLS the server must choose ``h2`` by ALPN; without, it must answer HTTP/2's own begin
    (prior knowledge: there is no upgrade from HTTP/1.1).

    Raises
    ------
    LoadError
        It does not agree, cannot be reached, or the package h2 is missing.
    """
    if find_spec("h2") is None:
        raise LoadError("HTTP/2 needs the package h2: pip install 'perflab[http2]'")
    origin, _ = split(url)
    try:
        family, address = addresses(origin)[0]
        with socket.socket(family, socket.SOCK_STREAM) as opened:
            opened.settimeout(min(LONGEST_S, workload.timeout_s))
            opened.connect(address)
            if origin.encrypted:
                _by_alpn(opened, origin, workload)
            else:
                _by_its_begin(opened, origin)
    except OSError as error:
        raise LoadError(
            f"{origin.authority} could not be asked whether it speaks HTTP/2: "
            f"{error.strerror or error}; nothing was sent"
        ) from None


def _by_alpn(opened: socket.socket, origin: Origin, workload: Workload) -> None:
    context = workload.trust.context()
    context.set_alpn_protocols(["h2"])
    try:
        with context.wrap_socket(opened, server_hostname=origin.host) as encrypted:
            chosen = encrypted.selected_alpn_protocol()
    except ssl.SSLError as error:
        if "NO_APPLICATION_PROTOCOL" not in str(error):
            raise
        chosen = None
    if chosen != "h2":
        raise _refused(origin, "it did not choose h2 when TLS offered it (ALPN)")


def _by_its_begin(opened: socket.socket, origin: Origin) -> None:
    opened.sendall(HELLO)
    head = b""
    while len(head) < FRAME_HEAD_BYTES and (piece := opened.recv(FRAME_HEAD_BYTES - len(head))):
        head += piece
    if len(head) < FRAME_HEAD_BYTES or head[3] != SETTINGS or any(head[5:]):
        raise _refused(origin, "it did not answer HTTP/2's begin with its settings")


def _refused(origin: Origin, why: str) -> LoadError:
    return LoadError(
        f"{origin.authority} does not speak HTTP/2: {why}. Leave --http2 away, or let the server "
        "speak it; nothing was sent"
    )
