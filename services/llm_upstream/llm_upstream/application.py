"""The application: which path is answered how, and each answer at its pace."""

from __future__ import annotations

import hmac
import resource
from collections import deque
from collections.abc import Iterator
from typing import Any

from specimen.presence import ClientGone, present
from specimen.refusal import Refused, check_reset
from specimen.server import prepared, server
from specimen.settings import content, public

from llm_upstream.counts import Counts, Stream
from llm_upstream.exchange import Exchange, Message, Receive, Send, clock, until
from llm_upstream.formats import MODEL, Format, Ollama, OpenAI, dumped
from llm_upstream.requested import read
from llm_upstream.script import script
from llm_upstream.settings import Settings

APIS: dict[str, type[OpenAI] | type[Ollama]] = {
    "/v1/chat/completions": OpenAI,
    "/api/chat": Ollama,
}


class Application:
    """All requests of one process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.counts = Counts()
        self.streams: deque[Stream] = deque(maxlen=settings.kept_streams)
        self._key = content(settings.secret_file)
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
        in_format = APIS.get(path, OpenAI if path.startswith("/v1/") else Ollama)
        try:
            await self._route(exchange, path)
        except Refused as refused:
            self.counts.refuse(refused.code)
            await exchange.answer(refused.status, in_format.error(refused.code, refused.reason))
        except ClientGone:
            return

    async def _route(self, exchange: Exchange, path: str) -> None:
        asked = f"{exchange.scope['method']} {path}"
        if exchange.scope["method"] == "POST" and path in APIS:
            await self._answer(exchange, APIS[path])
        elif asked == "POST /reset":
            check_reset(exchange.header("content-type"), self.counts.open)
            self.counts.clear()
            self.streams.clear()
            await exchange.answer(200, dumped({"status": "reset"}))
        elif asked in self._pages:
            await exchange.answer(200, dumped(self._pages[asked]()))
        else:
            raise Refused(404, "unknown_path", f"there is no {asked}")

    async def _answer(self, exchange: Exchange, in_format: type[OpenAI] | type[Ollama]) -> None:
        """Answer while the reader is there, and count how it went."""
        begun_ns = clock()
        self._check_key(exchange)
        asked = read(await exchange.body(), in_format.streams)
        if asked.model != MODEL:
            raise Refused(404, "model_not_found", f"model '{asked.model}' not found")
        decided = script(asked, self.settings)
        took_ns = self.settings.due_ns(max(0, decided.tokens - 1))
        framed = in_format(decided, took_ns)
        tell = self._stream if asked.stream else self._whole
        outcome = "aborted"
        self.counts.add(begun=1, open=1)
        try:
            await present(exchange.receive, tell(exchange, framed, begun_ns))
            outcome = "ended"
        finally:
            self.counts.add(open=-1, **{outcome: 1})

    def _check_key(self, exchange: Exchange) -> None:
        shown = exchange.header("authorization").removeprefix("Bearer ")
        if self._key and not hmac.compare_digest(shown.encode("latin-1"), self._key.encode()):
            raise Refused(401, "invalid_api_key", "the key is missing or wrong")

    async def _stream(self, exchange: Exchange, framed: Format, begun_ns: int) -> None:
        stream = Stream(begun_ns)
        self.streams.append(stream)
        await exchange.start(200, {"content-type": framed.stream_type})
        for number, data in enumerate(_chunks(framed)):
            due_ns = begun_ns + self.settings.due_ns(number)
            await until(due_ns)
            stream.note(due_ns, clock())
            self.counts.tokens_sent += 1
            await exchange.give(data)
        await exchange.give(framed.end(), more=False)

    async def _whole(self, exchange: Exchange, framed: Format, begun_ns: int) -> None:
        """Send the answer in one piece when its last token would have come."""
        await until(begun_ns + framed.took_ns)
        self.counts.add(tokens_sent=framed.script.tokens)
        await exchange.answer(200, framed.whole())

    def _in_force(self) -> dict[str, Any]:
        return {
            **public(self.settings),
            "max_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        }


def _chunks(framed: Format) -> Iterator[bytes]:
    if framed.script.call:
        yield from framed.call(framed.script.call)
    for number, word in enumerate(framed.script.words()):
        yield framed.token(word, number == 0)


if __name__ == "__main__":
    served = prepared("llm_upstream", Settings, Application)
    server(*served, loop="uvloop", lifespan="off").run()
