"""Telling an answer at its pace, whole or token by token, with the fault that is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from llm_upstream.counts import Counts, Stream
from llm_upstream.exchange import Broken, Exchange, clock
from llm_upstream.faults import MALFORMED
from llm_upstream.formats import Format
from llm_upstream.script import Script, due_ns, last_due_ns
from llm_upstream.settings import Settings

REASON = "the model broke, on purpose"


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and after how many tokens."""

    kind: str
    after: int


@dataclass(frozen=True)
class Telling:
    """One answer on its way to its reader."""

    exchange: Exchange
    settings: Settings
    counts: Counts
    script: Script
    format: Format
    fault: Fault
    stream: Stream

    async def tell(self) -> str:
        """Send the answer; return how it went, ``ended`` or ``broken``.

        Raises
        ------
        ReaderGone
            Nobody reads any more.
        Broken
            The connection is to end here.
        """
        if self.fault.kind == "silent":
            await self.exchange.until(None)
        told = self._stream if self.script.asked.stream else self._whole
        return await told()

    def _headers(self, content_type: str) -> dict[str, str]:
        return {"content-type": content_type, "x-stream": str(self.stream.number)}

    async def _stream(self) -> str:
        await self.exchange.start(200, self._headers(self.format.stream_type))
        sent = 0
        for sent, (due, data) in enumerate(self._chunks(), start=1):
            if sent == self.fault.after + 1 and await self._break():
                return "broken"
            await self._give_at(self.stream.begun_ns + due, data)
        # An answer that was too short for its fault has it at its end.
        if sent <= self.fault.after and await self._break():
            return "broken"
        if self.fault.kind == "unfinished":
            await self.exchange.give(b"", more=False)
            return "broken"
        await self._give_end(self.format.end(sent))
        return "ended"

    def _chunks(self) -> Iterator[tuple[int, bytes]]:
        """Yield when each chunk is due, in ns since the request, and its bytes."""
        due = due_ns(self.settings, self.script.seed)
        if self.script.call:
            self.counts.tool_calls += 1
            yield from ((next(due), data) for data in self.format.call(self.script.call))
            return
        words = self.script.words(10**12 if self.fault.kind == "endless" else None)
        for number, word in enumerate(words):
            yield next(due), self.format.token(word, number == 0)

    async def _give_at(self, due: int, data: bytes) -> None:
        await self.exchange.until(due)
        now = clock()
        self.stream.note(due, now)
        self.counts.token(now - due)
        self.counts.bytes_sent += len(data)
        await self.exchange.give(data)

    async def _give_end(self, data: bytes) -> None:
        self.counts.bytes_sent += len(data)
        await self.exchange.give(data)
        # As it was handed over whole, a reader who goes now has lost nothing.
        await self.exchange.give(b"", more=False)

    async def _break(self) -> bool:
        """Do what the fault wants in the middle; return whether the answer is over."""
        kind = self.fault.kind
        if kind == "dies":
            raise Broken
        if kind == "stalls":
            await self.exchange.until(None)
        if kind == "error":
            error = self.format.error(500, "model_broke", REASON)
            await self.exchange.give(self.format.framed(error))
            await self.exchange.give(b"", more=False)
            return True
        if kind == "malformed":
            await self.exchange.give(self.format.framed(MALFORMED))
        if kind == "huge":
            await self.exchange.give(self.format.token("x" * self.settings.huge_bytes, False))
        return False

    async def _whole(self) -> str:
        """Send the answer in one piece when its last token would have come."""
        last_ns = last_due_ns(self.settings, self.script)
        await self.exchange.until(self.stream.begun_ns + last_ns)
        self.counts.whole_answers += 1
        self.counts.tool_calls += bool(self.script.call)
        kind, data = self.fault.kind, self.format.whole()
        self.counts.tokens_sent += self.script.tokens
        if kind == "error":
            data = self.format.error(500, "model_broke", REASON).encode()
        status = 500 if kind == "error" else 200
        if kind == "malformed":
            data = MALFORMED.encode()
        if kind == "huge":
            data = b" " * self.settings.huge_bytes + data
        await self.exchange.start(status, self._headers("application/json"))
        if kind in ("dies", "unfinished", "stalls"):
            await self.exchange.give(data[: len(data) // 2])
            if kind == "stalls":
                await self.exchange.until(None)
            raise Broken
        while kind == "endless":
            await self.exchange.until(0)
            await self.exchange.give(b" " * 65536)
        await self._give_end(data)
        return "broken" if kind in ("error", "malformed") else "ended"
