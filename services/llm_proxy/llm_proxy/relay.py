"""One stream from the upstream to the client, and its end on either side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
from specimen import counts
from specimen.refusal import Refused
from sse_starlette import EventSourceResponse
from starlette.responses import StreamingResponse

from llm_proxy.modes import Mode
from llm_proxy.upstream import faults_named


@dataclass
class Counts(counts.Counts):
    """What the proxy counts.

    ``open`` are requests for an answer that are under way, ``streams_open`` those whose stream has
    begun. Each ends as ``completed``, as ``aborted`` (its client went), or as ``failed``, then also
    by its code in ``refused``. ``upstream_stopped`` are streams that were not read to their end.
    """

    requests: int = 0
    streams_open: int = 0
    completed: int = 0
    aborted: int = 0
    failed: int = 0
    upstream_stopped: int = 0
    chunks: int = 0
    bytes_read: int = 0


class Relay:
    """Reads one part of the upstream's answer at a time, and only when the client took the last.

    What waits in between are the transports' own buffers, each of a fixed size: a client that reads
    slowly holds the upstream back and no memory.
    """

    def __init__(self, response: aiohttp.ClientResponse, mode: Mode, counts: Counts) -> None:
        self._response, self._mode, self._counts = response, mode, counts
        self._first = b""
        self._outcome = "aborted"
        self._is_read = self._is_closed = False
        counts.add(streams_open=1)

    async def first(self) -> None:
        """Wait for the first bytes; raise Refused where none come."""
        self._first = await self._next()

    async def _next(self) -> bytes:
        # Parts that are there already would be read without a pause: nobody else would be heard.
        await asyncio.sleep(0)
        with faults_named():
            data = await self._response.content.readany()
        self._is_read = not data
        self._counts.bytes_read += len(data)
        return data

    async def chunks(self) -> AsyncIterator[Any]:
        """Yield what the client is to have; an error is the last of it."""
        try:
            data = self._first
            while data and not self._is_closed:
                for chunk in self._mode.feed(data):
                    yield self._given(chunk)
                data = await self._next()
            self._mode.end()
            self._outcome = "completed"
            if self._mode.has_error:
                self._fail("upstream_error")
        except Refused as refused:
            # After the last chunk nothing is missing, however the upstream's end went.
            if not self._is_closed and not self._mode.is_whole and not self._mode.has_error:
                self._fail(refused.code)
                yield self._given(self._mode.error(refused))

    def _given(self, chunk: str | bytes) -> str | bytes:
        self._counts.chunks += 1
        # Before it is sent: with the last chunk a client may go, and has lost nothing.
        if self._mode.is_whole:
            self._outcome = "completed"
        return chunk

    def _fail(self, code: str) -> None:
        self._outcome = "failed"
        self._counts.refuse(code)

    async def leave(self, _: Any = None) -> None:
        """Stop reading because the client has gone: what waits for the upstream is woken."""
        self.close()

    def close(self) -> str:
        """Stop reading, at once; return how it went."""
        if not self._is_closed:
            self._is_closed = True
            self._counts.add(streams_open=-1, upstream_stopped=not self._is_read)
            if not self._is_read:
                # A connection with unread bytes serves nobody else.
                self._response.close()
        return self._outcome

    def response(self, headers: dict[str, str]) -> Events | Bytes:
        """Return the response that sends the chunks."""
        made: Events | Bytes
        if self._mode.is_framed:
            made = Events(self.chunks(), headers=headers, client_close_handler_callable=self.leave)
        else:
            made = Bytes(self.chunks(), media_type="text/event-stream", headers=headers)
        made.relay, made.counts = self, self._counts
        return made


class _Ending:
    """Ends the relay with the response, also where its iterator was never started or is held."""

    relay: Relay
    counts: Counts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)  # type: ignore[misc]
        finally:
            self.counts.add(open=-1, **{self.relay.close(): 1})


class Events(_Ending, EventSourceResponse):
    """A stream of events, framed by sse-starlette."""


class Bytes(_Ending, StreamingResponse):
    """A stream of bytes that have their frames."""

    async def listen_for_disconnect(self, receive: Any) -> None:
        """Wait for the client's end."""
        await super().listen_for_disconnect(receive)
        self.relay.close()
