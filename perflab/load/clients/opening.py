"""Opens connections of the lean client: a socket, the handshake of TCP, and that of TLS."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from typing import Protocol

from perflab.host.shortages import class_of
from perflab.load.clients.outcome import CODES, ERRORS, FirstErrors
from perflab.load.clients.targets import Origin, Place


def kind_of(error: OSError | ValueError, otherwise: str) -> int:
    """Return the error code of an exception that a socket raised."""
    if isinstance(error, socket.gaierror):
        return CODES["dns"]
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return CODES["tls"]
    if isinstance(error, OSError) and error.errno == errno.ETIMEDOUT:
        return CODES["timeout"]
    return CODES[class_of(error) or otherwise]


def noted(errors: FirstErrors, error: OSError | ValueError, otherwise: str) -> int:
    """Return the error code of a socket's exception, and note its text."""
    code = kind_of(error, otherwise)
    text = (error.strerror if isinstance(error, OSError) else "") or str(error)
    errors.note(ERRORS[code], text)
    return code


def shut(loop: asyncio.AbstractEventLoop, opened: socket.socket) -> None:
    """Close a socket, which the loop watches no more."""
    # A socket whose wrapping failed has no descriptor any more.
    if (descriptor := opened.fileno()) >= 0:
        loop.remove_reader(descriptor)
        loop.remove_writer(descriptor)
    opened.close()


class Opener(Protocol):
    """The client that opens connections: where they lead, and what it notes."""

    loop: asyncio.AbstractEventLoop
    first_errors: FirstErrors

    @property
    def tls(self) -> Callable[[], ssl.SSLContext]:
        """Return the function that returns the context of encrypted connections."""

    @property
    def address(self) -> Callable[[Origin], Place]:
        """Return the function that looks an origin up."""


class Opening:
    """One connection while it is opened.

    It calls ``opened`` with the socket, or ``failed`` with an error code; the latter never before
    :meth:`begin` has returned.
    """

    def __init__(
        self,
        client: Opener,
        origin: Origin,
        opened: Callable[[socket.socket], None],
        failed: Callable[[int], None],
    ) -> None:
        self._client = client
        self._loop = client.loop
        self._origin = origin
        self._opened = opened
        self._failed = failed
        self._socket: socket.socket | None = None

    def begin(self) -> None:
        """Begin to connect."""
        try:
            place = self._client.address(self._origin)
            if isinstance(place, OSError):
                raise place
            family, address = place
            self._socket = plain = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            code = plain.connect_ex(address)
            if code not in (0, errno.EINPROGRESS):
                raise OSError(code, os.strerror(code))
        except OSError as error:
            # A request must not end before the call of submit has returned.
            self._loop.call_soon(self._failed, self._code_of(error, "connect"))
            return
        self._fd = plain.fileno()
        if self._origin.encrypted or not _is_connected(plain):
            self._loop.add_writer(self._fd, self._connected, plain)
        else:
            self._opened(plain)

    def close(self) -> None:
        """Give up."""
        if self._socket is not None:
            shut(self._loop, self._socket)

    def _connected(self, plain: socket.socket) -> None:
        code = plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._failed(self._code_of(OSError(code, os.strerror(code)), "connect"))
            return
        self._loop.remove_writer(self._fd)
        if not self._origin.encrypted:
            self._opened(plain)
            return
        try:
            # Only a connected socket can be wrapped: wrapping reads from it.
            self._socket = encrypted = self._client.tls().wrap_socket(
                plain,
                do_handshake_on_connect=False,
                suppress_ragged_eofs=False,
                server_hostname=self._origin.host,
            )
        except (OSError, ValueError) as error:
            self._failed(self._code_of(error, "tls"))
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
            self._failed(self._code_of(error, "tls"))
        else:
            self._opened(encrypted)

    def _code_of(self, error: OSError | ValueError, otherwise: str) -> int:
        return noted(self._client.first_errors, error, otherwise)


def _is_connected(opened: socket.socket) -> bool:
    # Over loopback the TCP handshake is over when connect returns: no turn need be waited.
    try:
        opened.getpeername()
    except OSError:
        return False
    return True
