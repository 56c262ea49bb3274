"""Another load generator, asked over HTTP: its start, and what is known of its load."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from perflab.errors import StackError
from perflab.stacks.asking import exchange
from perflab.stacks.json_pointer import find

SHOWN_CHARACTERS = 300


@dataclass(frozen=True)
class OtherGenerator:
    """A generator behind ``port``; ``name`` is what messages call it.

    A ``token`` is shown to it as bearer token, and is in no message.
    """

    port: int
    name: str
    token: str = field(default="", repr=False)

    def start(self, path: str, body: Mapping[str, Any], results: str, within_s: float) -> str:
        """Start its load; return the path of its results, from a JSON Pointer into the answer.

        Raises
        ------
        StackError
            It does not answer, refuses, or names no path.
        """
        status, text = exchange(self.port, "POST", path, dict(body), within_s, self.token)
        if not 200 <= status < 300:
            raise self.failure(f"its start was answered {status}: {text}")
        place = self._text_at(text, results)
        if not place.startswith("/"):
            raise self.failure(f"its start was answered with '{place}', which is no path")
        return place

    def look(self, place: str, status_at: str, patience_s: float) -> tuple[str, Any] | None:
        """Return status and results as they are now; None where it does not answer in time.

        Raises
        ------
        StackError
            It refuses, or answers without a status.
        """
        try:
            status, text = exchange(self.port, "GET", place, None, patience_s, self.token)
        except StackError:
            # One that is held up is silent; whether it lives is asked of its process.
            return None
        if not 200 <= status < 300:
            raise self.failure(f"its results were answered {status}: {text}")
        return self._text_at(text, status_at), json.loads(text)

    def failure(self, what: str) -> StackError:
        """Return an error that says what went wrong with the load."""
        return StackError(f"the other load ({self.name}): {self.shown(what)}")

    def shown(self, text: str) -> str:
        """Return the beginning of a text, without the token that it may repeat."""
        plain = text.replace(self.token, "(token)") if self.token else text
        return plain.strip()[:SHOWN_CHARACTERS]

    def _text_at(self, text: str, pointer: str) -> str:
        try:
            value = find(json.loads(text), pointer)
        except (ValueError, KeyError):
            value = None
        if not isinstance(value, str):
            raise self.failure(f"no text at '{pointer}' of its answer: {text or 'it was empty'}")
        return value
