"""What can go wrong, told in the format of OpenAI's API."""

from __future__ import annotations

import json
from typing import Any

from specimen.refusal import Refused


def told(refused: Refused) -> dict[str, Any]:
    """Return a refusal as OpenAI's clients understand it."""
    kind = "invalid_request_error" if refused.status < 500 else "upstream_error"
    error = {"message": refused.reason, "type": kind, "param": None, "code": refused.code}
    return {"error": error}


def text_of(refused: Refused) -> str:
    """Return it as JSON without line breaks."""
    return json.dumps(told(refused))


def broken(reason: str) -> Refused:
    """Return the word for an upstream that answers, but not as its API says."""
    return Refused(502, "upstream_broken", reason)
