"""What the stand-in will say, and when: decided whole before the first token."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

from llm_upstream.requested import Asked, Tool
from llm_upstream.settings import Settings

TEXT = (
    "a river carries sand past stones that were mountains once and nobody counts the grains but "
    "rain falls again on every field until morning when light finds its way through open windows "
    "where people begin work with quiet hands making bread"
)
WORDS = tuple(TEXT.split())
# A pause of no length is none: a rate of 0 means as fast as the reader reads.
MS, S = 1_000_000, 1_000_000_000


@dataclass(frozen=True)
class Call:
    """One call of a tool."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Script:
    """One answer: its tokens, or a call of a tool in their place, and how it ends."""

    asked: Asked
    id: str
    seed: int
    tokens: int
    call: Call | None
    is_cut: bool

    @property
    def finish(self) -> str:
        """Return why the answer ends, as both APIs call it."""
        if self.call:
            return "tool_calls"
        return "length" if self.is_cut else "stop"

    def words(self, limit: int | None = None) -> Iterator[str]:
        """Yield the tokens, each with the blank before it; without a limit all of them."""
        drawn = random.Random(self.seed)
        for number in range(self.tokens if limit is None else limit):
            word = drawn.choice(WORDS)
            yield word.capitalize() if number == 0 else f" {word}"


def script(asked: Asked, settings: Settings, stream: int) -> Script:
    """Decide an answer: at temperature 0 the same for the same request.

    At another temperature it depends on the request's own seed too; where that has none, on the
    number of the stream: it is then another one each time.
    """
    varied = b""
    if asked.temperature > 0:
        varied = str(stream if asked.seed is None else f"seed {asked.seed}").encode()
    mixed = hashlib.sha256(asked.digest + b"%d" % settings.seed + varied).digest()
    call = None
    if asked.tools and asked.tools_answered < settings.tool_calls:
        call = _call(asked.tools, asked.tools_answered, mixed)
    most = settings.tokens if asked.most_tokens is None else asked.most_tokens
    return Script(
        asked=asked,
        id=mixed[:12].hex(),
        seed=int.from_bytes(mixed[:8], "big"),
        tokens=0 if call else min(settings.tokens, most),
        call=call,
        is_cut=most < settings.tokens,
    )


def _call(tools: tuple[Tool, ...], number: int, mixed: bytes) -> Call:
    tool = tools[number % len(tools)]
    return Call(f"call_{mixed[12:20].hex()}", tool["name"], _arguments(tool, number))


def _arguments(tool: Tool, number: int) -> dict[str, Any]:
    """Return something of the right type for each parameter that the tool describes."""
    parameters = tool.get("parameters")
    described = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(described, dict):
        return {}
    return {name: _value(schema, number) for name, schema in described.items()}


def _value(schema: Any, number: int) -> Any:
    given = schema if isinstance(schema, dict) else {}
    choices = given.get("enum")
    if isinstance(choices, list) and choices:
        return choices[number % len(choices)]
    values: dict[str, Any] = {
        "integer": number + 1, "number": number + 0.5, "boolean": True, "array": [], "object": {},
    }  # fmt: skip
    kind = given.get("type")
    return values.get(kind, WORDS[number % len(WORDS)]) if isinstance(kind, str) else WORDS[number]


def due_ns(settings: Settings, seed: int) -> Iterator[int]:
    """Yield when each token is due, in ns since the request: an absolute schedule without end.

    Token i is due at ``first_token_ms + i / token_rate`` and up to ``jitter_ms`` later, drawn
    evenly and by the seed; never before the one ahead of it. What is late moves nothing after it.
    """
    drawn = random.Random(f"due {seed}")
    first_ns, latest_ns = settings.first_token_ms * MS, 0
    step_ns = S / settings.token_rate if settings.token_rate else 0.0
    for number in count():
        jitter_ns = drawn.random() * settings.jitter_ms * MS if settings.jitter_ms else 0.0
        latest_ns = max(latest_ns, round(first_ns + number * step_ns + jitter_ns))
        yield latest_ns


def last_due_ns(settings: Settings, script: Script) -> int:
    """Return when the last token of an answer is due."""
    return max(islice(due_ns(settings, script.seed), max(1, script.tokens)))
