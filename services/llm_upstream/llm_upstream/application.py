"""The application: which path is answered how."""

from __future__ import annotations

import asyncio
import hmac
import importlib.metadata
import os
import platform
import resource
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs

from llm_upstream.counts import Counts, Stream, kept
from llm_upstream.exchange import Broken, Exchange, Message, Receive, Send, clock
from llm_upstream.faults import AFTER_HEADER, FAULT_HEADER, FAULTS
from llm_upstream.formats import CREATED, CREATED_AT, Format, Ollama, OpenAI, dumped
from llm_upstream.refusal import ReaderGone, Refused, bad_request
from llm_upstream.requested import Asked, read_ollama, read_openai
from llm_upstream.script import last_due_ns, script
from llm_upstream.settings import WHOLE, Settings, whole
from llm_upstream.telling import Fault, Telling

LIBRARIES = ("httptools", "uvicorn", "uvloop")
Page = Callable[[Exchange], Awaitable[dict[str, Any]]]
# What each API calls itself, and how its bodies are read.
APIS: dict[str, tuple[type[Format], Callable[[bytes], Asked]]] = {
    "/v1/chat/completions": (OpenAI, read_openai),
    "/api/chat": (Ollama, read_ollama),
}


class Application:
    """All requests of one process; ``connections`` tells how many are open."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.counts = Counts()
        self.streams = kept(settings.kept_streams)
        self.connections: Callable[[], int] = lambda: 0
        self._numbered = 0
        secret = settings.secret_file
        self._key = secret.read_text().strip() if secret.name else ""
        self._pages: dict[tuple[str, str], Page] = {
            ("GET", "/health"): self._health,
            ("GET", "/settings"): self._in_force,
            ("GET", "/counts"): self._counted,
            ("GET", "/streams"): self._latest,
            ("POST", "/reset"): self._reset,
            ("GET", "/v1/models"): self._models,
            ("GET", "/api/tags"): self._tags,
        }

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        exchange, path = Exchange(scope, receive, send), str(scope["path"])
        in_format = APIS.get(path, (OpenAI if path.startswith("/v1/") else Ollama,))[0]
        with suppress(ReaderGone):
            try:
                await self._route(exchange, path)
            except Refused as refused:
                self.counts.refuse(refused.code)
                told = in_format.error(refused.status, refused.code, str(refused))
                await exchange.answer(refused.status, "application/json", told.encode())

    async def _route(self, exchange: Exchange, path: str) -> None:
        method = str(exchange.scope["method"])
        if method == "POST" and path in APIS:
            await self._answer(exchange, *APIS[path])
            return
        page = self._pages.get((method, path))
        if page is None:
            raise Refused(404, "unknown_path", f"there is no {method} {path}")
        await exchange.answer(200, "application/json", dumped(await page(exchange)).encode())

    async def _answer(
        self, exchange: Exchange, in_format: type[Format], read: Callable[[bytes], Asked]
    ) -> None:
        begun_ns = clock()
        self._check_key(exchange)
        asked, fault = read(await exchange.body()), self._fault(exchange)
        if asked.model != self.settings.model:
            raise Refused(404, "model_not_found", f"model '{asked.model}' not found")
        if fault.kind == "busy":
            raise Refused(503, "overloaded", "the model is busy, on purpose")
        self._numbered += 1
        stream = Stream(self._numbered, exchange.header("x-request-id")[:100], begun_ns)
        if asked.stream:
            self.streams.append(stream)
        decided = script(asked, self.settings, stream.number)
        framed = in_format(decided, last_due_ns(self.settings, decided))
        telling = Telling(
            exchange, self.settings, self.counts, decided, framed, fault, stream
        )  # fmt: skip
        await self._watched(exchange, telling)

    async def _watched(self, exchange: Exchange, telling: Telling) -> None:
        """Tell an answer, and count how it went, its reader watched beside it."""
        outcome = "aborted"
        self.counts.begin()
        watching = asyncio.create_task(exchange.watch())
        try:
            outcome = await telling.tell()
        except Broken:
            outcome = "broken"
            raise
        finally:
            watching.cancel()
            telling.stream.outcome = outcome
            self.counts.end(outcome)

    def _check_key(self, exchange: Exchange) -> None:
        if not self._key:
            return
        shown = exchange.header("authorization").removeprefix("Bearer ")
        if not hmac.compare_digest(shown.encode("latin-1"), self._key.encode()):
            raise Refused(401, "invalid_api_key", "the key is missing or wrong")

    def _fault(self, exchange: Exchange) -> Fault:
        """Return the fault that the request wants, else that of the settings."""
        kind = exchange.header(FAULT_HEADER) or self.settings.fault
        if kind not in FAULTS:
            raise bad_request(f"X-Fault must be one of {', '.join(FAULTS)}")
        after = exchange.header(AFTER_HEADER)
        try:
            bounds = WHOLE["fault_after"]
            number = whole("X-Fault-After", after, *bounds) if after else self.settings.fault_after
        except ValueError as error:
            raise bad_request(str(error)) from None
        return Fault(kind, number)

    async def _health(self, _: Exchange) -> dict[str, Any]:
        return {"status": "ok"}

    async def _in_force(self, _: Exchange) -> dict[str, Any]:
        loop = type(asyncio.get_running_loop())
        return {
            **self.settings.public(),
            "loop": "uvloop" if loop.__module__.startswith("uvloop") else "asyncio",
            "max_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            "wants_key": bool(self._key),
            "cores": sorted(os.sched_getaffinity(0)),
            "python": platform.python_version(),
            "versions": {name: importlib.metadata.version(name) for name in LIBRARIES},
        }

    async def _counted(self, _: Exchange) -> dict[str, Any]:
        return self.counts.shown(self.connections())

    async def _latest(self, exchange: Exchange) -> dict[str, Any]:
        """Return the latest streams, oldest first; ``last`` says how many."""
        asked = parse_qs(exchange.scope["query_string"].decode("latin-1")).get("last", ["10"])[0]
        try:
            last = whole("last", asked, 1, 10_000)
        except ValueError as error:
            raise bad_request(str(error)) from None
        return {"streams": [stream.shown() for stream in list(self.streams)[-last:]]}

    async def _reset(self, exchange: Exchange) -> dict[str, Any]:
        # A web page of another origin cannot send this type unasked.
        if exchange.header("content-type").partition(";")[0].strip() != "application/json":
            raise Refused(403, "foreign_page", "send Content-Type: application/json")
        if self.counts.open:
            raise Refused(409, "streams_under_way", f"{self.counts.open} answers are under way")
        self.counts.clear()
        self.streams.clear()
        return {"status": "reset"}

    async def _models(self, _: Exchange) -> dict[str, Any]:
        model = {"id": self.settings.model, "object": "model", "created": CREATED}
        return {"object": "list", "data": [{**model, "owned_by": "perflab"}]}

    async def _tags(self, _: Exchange) -> dict[str, Any]:
        name = self.settings.model
        described = {"format": "stand-in", "family": "stand-in"}
        model = {"name": name, "model": name, "modified_at": CREATED_AT, "size": 0}
        return {"models": [{**model, "digest": "0" * 64, "details": described}]}
