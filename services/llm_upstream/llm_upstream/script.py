"""What the stand-in will say: decided whole before the first token."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from llm_upstream.requested import Asked, Tool
from llm_upstream.settings import Settings

TEXT = (
    "a river carries sand past stones that were mountains once and nobody counts the grains but "
    "rain falls again on every field until morning when light finds its way through open windows "
    "where people begin work with quiet hands making bread"
)
WORDS = tuple(TEXT.split())


@dataclass(frozen=True)
class Call:
    """One call of a tool."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Script:
    """One answer: its tokens, or a call of a tool in their place."""

    asked: Asked
    id: str
    tokens: int
    call: Call | None

    @property
    def finish(self) -> str:
        """Return why the answer ends, as OpenAI calls it."""
        return "tool_calls" if self.call else "stop"

    def words(self) -> Iterator[str]:
        """Yield the tokens, each with the blank before it."""
        drawn = random.Random(self.asked.digest)
        for number in range(self.tokens):
            word = drawn.choice(WORDS)
            yield word.capitalize() if number == 0 else f" {word}"


def script(asked: Asked, settings: Settings) -> Script:
    """Decide an answer: the same for the same request."""
    call = None
    if asked.tools and asked.tools_answered < settings.tool_calls:
        call = _call(asked.tools, asked.tools_answered, asked.digest)
    return Script(asked, asked.digest[:12].hex(), 0 if call else settings.tokens, call)


def _call(tools: tuple[Tool, ...], number: int, digest: bytes) -> Call:
    """Return a call with something of the right type for each parameter that is described."""
    tool = tools[number % len(tools)]
    described = (tool.get("parameters") or {}).get("properties") or {}
    arguments = {name: _value(schema, number) for name, schema in described.items()}
    return Call(f"call_{digest[12:20].hex()}", tool["name"], arguments)


def _value(schema: dict[str, Any], number: int) -> Any:
    if choices := schema.get("enum"):
        return choices[number % len(choices)]
    values: dict[str, Any] = {
        "integer": number + 1, "number": number + 0.5, "boolean": True, "array": [], "object": {},
    }  # fmt: skip
    return values.get(str(schema.get("type")), WORDS[number % len(WORDS)])
