"""What can go wrong: a status, a code, and a reason, told in the format of the API asked."""

from __future__ import annotations

import json
from typing import Any


class Refused(Exception):
    """A request that is answered with a status and a reason, or a stream that ends with it."""

    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.code, self.reason = status, code, reason

    def told(self, is_openai: bool) -> dict[str, Any]:
        """Return it as OpenAI's or Ollama's clients understand it."""
        if not is_openai:
            return {"error": self.reason}
        kind = "invalid_request_error" if self.status < 500 else "upstream_error"
        told = {"message": self.reason, "type": kind, "param": None, "code": self.code}
        return {"error": told}

    def text(self, is_openai: bool) -> str:
        """Return it as JSON without line breaks."""
        return json.dumps(self.told(is_openai))


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


def invalid(reason: str) -> Refused:
    """Return the refusal of a body that is no request."""
    return Refused(422, "invalid_request", reason)


def broken(reason: str) -> Refused:
    """Return the word for an upstream that answers, but not as its API says."""
    return Refused(502, "upstream_broken", reason)
