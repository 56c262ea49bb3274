"""A non-blocking socket on the event loop, from its opening to the end of the TLS handshake."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import time
from typing import Any, Protocol

from perflab.load.exchange import Exchange
from perflab.load.outcome import CODES, ERRORS, FirstErrors
from perflab.load.response import ResponseReader
from perflab.load.targets import Origin

WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
clock = time.monotonic_ns


def kind_of(error: OSError | ValueError, otherwise: str) -> int:
    """Return the error code of what a socket raised."""
    if isinstance(error, socket.gaierror):
        return CODES["dns"]
    if isinstance(error, ssl.SSLError):
        return CODES["tls"]
    if isinstance(error, ValueError):
        return CODES[otherwise]
    if error.errno == errno.EADDRNOTAVAIL:
        return CODES["ports"]
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return CODES["files"]
    if error.errno == errno.ETIMEDOUT:
        return CODES["timeout"]
    return CODES[otherwise]


class Owner(Protocol):
    """The client whose connection it is: what a connection asks of it, and tells it."""

    loop: asyncio.AbstractEventLoop
    landing: memoryview
    first_errors: FirstErrors

    def address(self, origin: Origin) -> tuple[socket.AddressFamily, tuple[str, int]]:
        """Return where to connect to; raises OSError."""

    def tls(self) -> ssl.SSLContext:
        """Return the TLS context."""

    def finished(self, connection: Any, exchange: Exchange, keep: bool) -> None:
        """The exchange has ended; ``keep`` says that the connection may be used again."""

    def forget(self, connection: Any) -> None:
        """The connection has closed."""


class Dialled:
    """What a connection is before its first request: a socket that connects, and may fail."""

    def __init__(self, client: Owner, origin: Origin) -> None:
        self.origin = origin
        self.usable = True
        self.exchange: Exchange | None = None
        self._client = client
        self._loop = client.loop
        self._began_ns = 0
        self._socket: socket.socket | None = None

    def _ready(self, exchange: Exchange, opened: socket.socket) -> None:
        """It is open: send the request that it was opened for."""
        raise NotImplementedError

    def _fail(self, code: int, reader: ResponseReader | None = None) -> None:
        """It cannot be used any more: end what is under way with an error code."""
        raise NotImplementedError

    def open(self, exchange: Exchange) -> None:
        """Connect, then send the exchange's request."""
        self.exchange = exchange
        self._began_ns = clock()
        try:
            family, address = self._client.address(self.origin)
            self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = self._socket.connect_ex(address)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))
        except OSError as error:
            self._fail_soon(self._why(error, "connect"))
            return
        self._fd = self._socket.fileno()
        if self.origin.encrypted or not self._is_connected(self._socket):
            self._loop.add_writer(self._fd, self._connected)
        else:
            self._ready(exchange, self._socket)

    @staticmethod
    def _is_connected(opened: socket.socket) -> bool:
        # Over loopback the handshake is over when connect returns: no need to wait a turn.
        try:
            opened.getpeername()
        except OSError:
            return False
        return True

    def _connected(self) -> None:
        assert self._socket is not None
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._fail(self._why(OSError(code, os.strerror(code)), "connect"))
            return
        self._loop.remove_writer(self._fd)
        assert self.exchange is not None
        if not self.origin.encrypted:
            self._ready(self.exchange, self._socket)
            return
        try:
            # Not before it is connected: wrapping reads from the socket.
            self._socket = encrypted = self._client.tls().wrap_socket(
                self._socket, do_handshake_on_connect=False, server_hostname=self.origin.host
            )
        except (OSError, ValueError) as error:
            self._fail(self._why(error, "tls"))
            return
        self._shake_hands(encrypted)

    def _shake_hands(self, encrypted: ssl.SSLSocket) -> None:
        self._loop.remove_writer(self._fd)
        self._loop.remove_reader(self._fd)
        try:
            encrypted.do_handshake()
        except ssl.SSLWantReadError:
            self._loop.add_reader(self._fd, self._shake_hands, encrypted)
        except ssl.SSLWantWriteError:
            self._loop.add_writer(self._fd, self._shake_hands, encrypted)
        except OSError as error:
            self._fail(self._why(error, "tls"))
        else:
            assert self.exchange is not None
            self._ready(self.exchange, encrypted)

    def _hang_up(self) -> None:
        if self._socket is None:
            return
        # A socket that could not be wrapped has no descriptor any more.
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
        self._socket.close()

    def _why(self, error: OSError | ValueError, otherwise: str) -> int:
        """Return the error code of what a socket raised, and keep its words."""
        code = kind_of(error, otherwise)
        text = (error.strerror if isinstance(error, OSError) else "") or str(error)
        self._client.first_errors.note(ERRORS[code], text)
        return code

    def _fail_soon(self, code: int) -> None:
        # Whoever submits a request must not get its end before submit has returned.
        self._loop.call_soon(self._fail, code)
