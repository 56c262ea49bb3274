"""One stream from the upstream to the client, and its end on either side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from sse_starlette import EventSourceResponse
from starlette.responses import StreamingResponse

from llm_proxy.counts import Counts
from llm_proxy.modes import Mode
from llm_proxy.refusal import Refused
from llm_proxy.timing import clock
from llm_proxy.upstream import faults_named


class Relay:
    """Reads one part of the upstream's answer at a time, and only when the client took the last.

    What waits in between are the transports' own buffers, each of a fixed size: a client that reads
    slowly holds the upstream back and no memory.
    """

    def __init__(
        self, response: aiohttp.ClientResponse, mode: Mode, counts: Counts, limit_s: float
    ) -> None:
        self._response, self._mode, self._counts = response, mode, counts
        self.headers = response.headers
        self._limit_s = limit_s
        self._ends_ns = clock() + round(limit_s * 1e9)
        self._first = b""
        self._outcome = "aborted"
        self._is_read = self._is_closed = False
        counts.begin_stream()

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
                if clock() > self._ends_ns:
                    reason = f"an answer may take {self._limit_s:g} s"
                    raise Refused(504, "stream_too_long", reason)
                data = await self._next()
            self._mode.end()
            self._note_end()
        except Refused as refused:
            # After the last chunk nothing is missing, however the upstream's end went.
            if not self._is_closed and not self._mode.is_whole and not self._mode.has_error:
                self.fail(refused)
                yield self._given(self._mode.error(refused))

    def _given(self, chunk: str | bytes) -> str | bytes:
        self._counts.chunks += 1
        self._counts.bytes_given += len(chunk)
        # Before it is sent: with the last chunk a client may go, and has lost nothing.
        if self._mode.is_whole:
            self._outcome = "completed"
        return chunk

    def _note_end(self) -> None:
        self._outcome = "completed"
        if self._mode.has_error:
            self._outcome = "failed"
            self._counts.refuse("upstream_error")

    def fail(self, refused: Refused) -> None:
        """Note an error of the upstream."""
        self._outcome = "failed"
        self._counts.refuse(refused.code)

    async def leave(self, _: Any = None) -> None:
        """Stop reading because the client has gone: what waits for the upstream is woken."""
        self.close()

    def close(self) -> str:
        """Stop reading, at once; return how it went."""
        if not self._is_closed:
            self._is_closed = True
            self._counts.streams_open -= 1
            if not self._is_read:
                self._counts.upstream_stopped += 1
                # A connection with unread bytes serves nobody else.
                self._response.close()
        return self._outcome


class _Ending:
    """Ends the relay with the response, also where its iterator was never started or is held."""

    relay: Relay
    counts: Counts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)  # type: ignore[misc]
        finally:
            self.counts.end(self.relay.close())


class Events(_Ending, EventSourceResponse):
    """A stream of events, framed by sse-starlette."""


class Bytes(_Ending, StreamingResponse):
    """A stream of bytes that have their frames."""

    async def listen_for_disconnect(self, receive: Any) -> None:
        """Wait for the client's end."""
        await super().listen_for_disconnect(receive)
        self.relay.close()


def streamed(
    relay: Relay, counts: Counts, mode: str, is_openai: bool, headers: dict[str, str]
) -> Events | Bytes:
    """Return the response that sends a relay's chunks."""
    response: Events | Bytes
    if is_openai and mode != "raw":
        chunks = relay.chunks()
        response = Events(chunks, headers=headers, client_close_handler_callable=relay.leave)
    else:
        kind = "text/event-stream" if is_openai else "application/x-ndjson"
        response = Bytes(relay.chunks(), media_type=kind, headers=headers)
    response.relay, response.counts = relay, counts
    return response
