"""The application: which path is answered how, and each answer at its pace."""

from __future__ import annotations

import resource
from collections import deque
from collections.abc import Iterator
from typing import Any

from specimen.presence import ClientGone, present
from specimen.refusal import Refused, check_reset
from specimen.server import prepared, server
from specimen.settings import public

from llm_upstream.counts import Counts, Stream
from llm_upstream.exchange import Exchange, Message, Receive, Send, clock, until
from llm_upstream.formats import MODEL, Answer, dumped, refusal
from llm_upstream.requested import read
from llm_upstream.script import script
from llm_upstream.settings import Settings


class Application:
    """All requests of one process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.counts = Counts()
        self.streams: deque[Stream] = deque(maxlen=settings.kept_streams)
        self._pages = {
            "GET /health": lambda: {"status": "ok"},
            "GET /settings": self._in_force,
            "GET /counts": self.counts.shown,
            "GET /streams": lambda: {"streams": [stream.shown() for stream in self.streams]},
        }

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        exchange, path = Exchange(scope, receive, send), str(scope["path"])
        try:
            await self._route(exchange, path)
        except Refused as refused:
            self.counts.refuse(refused.code)
            await exchange.answer(refused.status, refusal(refused.code, refused.reason))
        except ClientGone:
            return

    async def _route(self, exchange: Exchange, path: str) -> None:
        asked = f"{exchange.scope['method']} {path}"
        if asked == "POST /v1/chat/completions":
            await self._answer(exchange)
        elif asked == "POST /reset":
            check_reset(exchange.header("content-type"), self.counts.open)
            self.counts.clear()
            self.streams.clear()
            await exchange.answer(200, dumped({"status": "reset"}))
        elif asked in self._pages:
            await exchange.answer(200, dumped(self._pages[asked]()))
        else:
            raise Refused(404, "unknown_path", f"there is no {asked}")

    async def _answer(self, exchange: Exchange) -> None:
        """Answer while the reader is there, and count how it went."""
        begun_ns = clock()
        asked = read(await exchange.body())
        if asked.model != MODEL:
            raise Refused(404, "model_not_found", f"model '{asked.model}' not found")
        answer = Answer(script(asked, self.settings))
        tell = self._stream if asked.stream else self._whole
        outcome = "aborted"
        self.counts.add(begun=1, open=1)
        try:
            await present(exchange.receive, tell(exchange, answer, begun_ns))
            outcome = "ended"
        finally:
            self.counts.add(open=-1, **{outcome: 1})

    async def _stream(self, exchange: Exchange, answer: Answer, begun_ns: int) -> None:
        stream = Stream(begun_ns)
        self.streams.append(stream)
        await exchange.start(200, {"content-type": answer.stream_type})
        for number, data in enumerate(_chunks(answer)):
            due_ns = begun_ns + self.settings.due_ns(number)
            await until(due_ns)
            stream.note(due_ns, clock())
            self.counts.tokens_sent += 1
            await exchange.give(data)
        await exchange.give(answer.end(), more=False)

    async def _whole(self, exchange: Exchange, answer: Answer, begun_ns: int) -> None:
        """Send the answer in one piece when its last token would have come."""
        await until(begun_ns + self.settings.due_ns(max(0, answer.script.tokens - 1)))
        self.counts.add(tokens_sent=answer.script.tokens)
        await exchange.answer(200, answer.whole())

    def _in_force(self) -> dict[str, Any]:
        return {
            **public(self.settings),
            "max_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        }


def _chunks(answer: Answer) -> Iterator[bytes]:
    if answer.script.call:
        yield from answer.call(answer.script.call)
    for number, word in enumerate(answer.script.words()):
        yield answer.token(word, number == 0)


if __name__ == "__main__":
    served = prepared("llm_upstream", Settings, Application)
    server(*served, loop="uvloop", lifespan="off").run()
