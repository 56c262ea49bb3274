"""One connection of the lean client: one exchange at a time on a non-blocking socket.

It uses plain sockets, not transports, because the instants must be true: ``send`` returns when the
kernel has the bytes, whereas a transport would queue them to the end of the loop's turn.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import time
from typing import Protocol

from perflab.load.clients.body import size_in_words
from perflab.load.clients.exchange import Exchange
from perflab.load.clients.kept_replies import NAME_BITS, ONE_IN, ReplyKeeper
from perflab.load.clients.opening import Opener, Opening, noted, shut
from perflab.load.clients.outcome import CODES, ERRORS
from perflab.load.clients.response import BadResponse, ResponseReader, header, server_phases
from perflab.load.clients.targets import Origin
from perflab.load.records.arrival_points import ArrivalPoints

READ_BYTES = 128 * 1024
LONGEST_REMEMBERED = 32 * 1024
WOULD_BLOCK = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
UNEXPECTED_EOF = "UNEXPECTED_EOF_WHILE_READING"


class Owner(Opener, Protocol):
    """The client of a connection: what reads and notes its answers, and takes it back."""

    landing: memoryview
    keeper: ReplyKeeper | None

    def finished(self, connection: Connection, exchange: Exchange, keep: bool) -> None:
        """Take the connection back."""

    def forget(self, connection: Connection) -> None:
        """Forget a closed connection."""


class Connection:
    """A connection that carries at most one exchange at a time."""

    def __init__(self, client: Owner, origin: Origin) -> None:
        self.origin = origin
        self.usable = True
        self.exchange: Exchange | None = None
        self._client = client
        self._loop = client.loop
        self._began_ns = 0
        self._opening: Opening | None = None
        self._socket: socket.socket | None = None
        self._reader: ResponseReader | None = None
        # The part of a request that the kernel has not taken yet.
        self._unsent = memoryview(b"")
        self._broken = 0

    # Opening and closing.

    def open(self, exchange: Exchange) -> None:
        """Connect, then send the exchange's request."""
        self.exchange = exchange
        self._began_ns = time.monotonic_ns()
        self._opening = Opening(self._client, self.origin, self._opened, self._fail)
        self._opening.begin()

    def _opened(self, opened: socket.socket) -> None:
        exchange = self.exchange
        assert exchange is not None
        self._opening, self._socket = None, opened
        self._fd, self._recv, self._send = opened.fileno(), opened.recv, opened.send
        self._loop.add_reader(self._fd, self._readable)
        exchange.connect_ns = time.monotonic_ns() - self._began_ns
        self.send(exchange)

    def close(self) -> None:
        """Close the socket; the caller must have removed the exchange under way."""
        if not self.usable:
            return
        self.usable = False
        if self._opening is not None:
            self._opening.close()
            # Nothing collects the cycle: workers run without gc.
            self._opening = None
        if self._socket is not None:
            shut(self._loop, self._socket)
        if self._reader is not None:
            self._reader.release()
        self._client.forget(self)

    # Sending.

    def send(self, exchange: Exchange) -> None:
        """Send a request on the idle connection."""
        self.exchange = exchange
        prepared = exchange.prepared
        data = prepared.payload if prepared.turn is None else prepared.turn(exchange.user)
        reader = self._reader
        rules = prepared.body_rules
        if reader is None or (rules is not reader.rules and rules != reader.rules):
            self._reader = reader = ResponseReader(rules)
        if not reader.fresh:
            reader.begin()
        if prepared.progress_points:
            exchange.progress = ArrivalPoints(prepared.progress_points)
        if prepared.streams and reader.body is not None:
            exchange.stream = reader.body.stream
        try:
            sent = self._send(data)
        except WOULD_BLOCK:
            sent = 0
        except OSError as error:
            self._fail_soon(noted(self._client.first_errors, error, "reset"))
            return
        exchange.sent_ns = time.monotonic_ns()
        if sent != len(data):
            self._unsent = memoryview(data)[sent:]
            self._loop.add_writer(self._fd, self._writable)

    def _writable(self) -> None:
        try:
            self._unsent = self._unsent[self._send(self._unsent) :]
        except WOULD_BLOCK:
            return
        except ConnectionError as error:
            # The peer may have answered before it stopped reading: its answer may still arrive.
            self._broken = noted(self._client.first_errors, error, "reset")
            self._loop.remove_writer(self._fd)
            return
        except OSError as error:
            self._fail(noted(self._client.first_errors, error, "reset"))
        else:
            if not self._unsent:
                self._loop.remove_writer(self._fd)

    # Receiving.

    def _readable(self) -> None:
        reader = self._reader
        if reader is not None and reader.left:
            self._long_readable(reader)
            return
        try:
            data = self._recv(READ_BYTES)
        except WOULD_BLOCK:
            return
        except OSError as error:
            self._broken_off(error)
            return
        now_ns = time.monotonic_ns()
        exchange = self.exchange
        if exchange is None or reader is None:
            # The peer closed an idle connection, or sent bytes that no request asked for.
            self.close()
            return
        if not data:
            self._ended(exchange, reader, now_ns)
            return
        prepared = exchange.prepared
        if reader.fresh:
            exchange.first_byte_ns = now_ns
            if data == prepared.last_bytes and not self._unsent:
                exchange.done_ns = now_ns
                (
                    exchange.status, exchange.bytes, exchange.error, exchange.phases, exchange.kept,
                ) = prepared.last_outcome  # fmt: skip
                self.exchange = None
                if exchange.connection is self and prepared.unwatched:
                    # The user keeps its connection: the client has nothing to do.
                    exchange.finish(exchange)
                else:
                    self._client.finished(self, exchange, True)
                return
        self._feed(exchange, reader, data, now_ns)

    def _long_readable(self, reader: ResponseReader) -> None:
        """Read on in a long body: its bytes are only counted and summed."""
        exchange, opened, landing = self.exchange, self._socket, self._client.landing
        assert exchange is not None
        assert opened is not None
        try:
            number = opened.recv_into(landing)
            reader.take(landing[:number])
        except WOULD_BLOCK:
            return
        except OSError as error:
            self._broken_off(error)
            return
        except BadResponse as error:
            self._refuse(error, reader)
            return
        now_ns = time.monotonic_ns()
        if exchange.progress is not None and number:
            exchange.progress.note(now_ns, reader.size)
        if not number:
            self._ended(exchange, reader, now_ns)
        elif reader.complete:
            self._complete(exchange, reader, now_ns)
            self._hand_back(exchange, reader)

    def _feed(self, exchange: Exchange, reader: ResponseReader, data: bytes, now_ns: int) -> None:
        is_first = reader.fresh
        try:
            complete = reader.feed(data)
        except BadResponse as error:
            if exchange.stream is not None:
                exchange.stream.note(now_ns)
            self._refuse(error, reader)
            return
        if exchange.stream is not None:
            exchange.stream.note(now_ns)
        if exchange.progress is not None:
            exchange.progress.note(now_ns, reader.size)
        if not complete:
            if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
                self._readable()
            return
        self._complete(exchange, reader, now_ns)
        prepared = exchange.prepared
        repeats = prepared.repeats and is_first and reader.keep_alive and not reader.encoding
        # Those with the same bytes have its class: of an answer that is not kept none is known.
        has_class = (
            exchange.kept or exchange.error or prepared.is_judged or self._client.keeper is None
        )
        if repeats and has_class and len(data) <= LONGEST_REMEMBERED:
            prepared.last_bytes = data
            prepared.last_outcome = (
                exchange.status,
                exchange.bytes,
                exchange.error,
                exchange.phases,
                exchange.kept,
            )
        self._hand_back(exchange, reader)

    def _hand_back(self, exchange: Exchange, reader: ResponseReader) -> None:
        self.exchange = None
        keep = reader.keep_alive and not self._unsent
        self._client.finished(self, exchange, keep)

    def _complete(self, exchange: Exchange, reader: ResponseReader, now_ns: int) -> None:
        exchange.done_ns = now_ns
        exchange.status, exchange.bytes = reader.status, reader.size
        exchange.error = exchange.prepared.judge(reader.status, reader.body)
        exchange.phases = server_phases(reader.head)
        exchange.kept = 0
        keeper = self._client.keeper
        if (
            keeper is not None
            # This is keeper.is_passed_over.
            and not (
                now_ns % ONE_IN and exchange.bytes << NAME_BITS | exchange.template in keeper.usual
            )
            and not exchange.error
            and not exchange.prepared.is_judged
        ):
            exchange.kept = keeper.keep(exchange, reader.head, reader.pieces)
        if exchange.error:
            line = reader.head.partition(b"\r")[0].decode("latin-1")
            text = f"{line}, {size_in_words(reader.size, reader.encoding, reader.body)}"
            if exchange.stream is not None:
                text += f", {exchange.stream.chunks} chunks"
            self._client.first_errors.note(ERRORS[exchange.error], text, reader.status)
        if exchange.prepared.wants_reply:
            exchange.reply = (reader.head, reader.give_body())

    def _broken_off(self, error: OSError) -> None:
        exchange, reader = self.exchange, self._reader
        if exchange is None or reader is None:
            self.close()
        elif isinstance(error, ssl.SSLEOFError) and error.reason == UNEXPECTED_EOF:
            self._ended(exchange, reader, time.monotonic_ns(), is_said=False)
        else:
            if isinstance(error, ssl.SSLEOFError):  # without that reason it was a reset
                error = ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
            self._fail(noted(self._client.first_errors, error, "reset"), reader)

    def _ended(
        self, exchange: Exchange, reader: ResponseReader, now_ns: int, is_said: bool = True
    ) -> None:
        kind = reader.end(is_said)
        if kind:
            self._fail(self._broken or CODES[kind], reader)
            return
        self._complete(exchange, reader, now_ns)
        self.exchange = None
        self._client.finished(self, exchange, False)

    def location(self) -> str:
        """Return the Location header of the last response."""
        return header(self._reader.head, "location") if self._reader else ""

    # Failing.

    def abort(self, kind: str) -> None:
        """Give up the exchange under way, if any, with an error class."""
        self._fail(CODES[kind], self._reader)

    def _refuse(self, error: BadResponse, reader: ResponseReader) -> None:
        self._client.first_errors.note(error.kind, str(error))
        self._fail(CODES[error.kind], reader)

    def _fail(self, code: int, reader: ResponseReader | None = None) -> None:
        exchange, self.exchange = self.exchange, None
        self.close()
        if exchange is None:
            return
        exchange.done_ns = time.monotonic_ns()
        exchange.error, exchange.phases = code, None
        exchange.status = reader.status if reader is not None else 0
        exchange.bytes = reader.size if reader is not None else 0
        self._client.finished(self, exchange, False)

    def _fail_soon(self, code: int) -> None:
        # A request must not end before the call of submit has returned.
        self._loop.call_soon(self._fail, code)
