"""Chunks and answers parsed and made anew, as the published system did before."""

from __future__ import annotations

import json
from typing import Any

from specimen.refusal import Refused

KNOWN = ("id", "object", "created", "model", "usage")
SPOKEN = ("role", "content", "thinking", "reasoning_content", "refusal", "tool_calls")


def rebuilt(content: str | bytes) -> str:
    """Return a chunk or answer with its known parts; raise Refused for anything else."""
    try:
        given = json.loads(content)
        if "error" not in given:
            choices = [_choice(choice) for choice in given["choices"]]
            return json.dumps(_kept(given, KNOWN) | {"choices": choices})
        told = _reason(given["error"])
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        reason = "the upstream sent a chunk that its API does not allow"
        raise Refused(502, "upstream_malformed", reason) from None
    raise Refused(502, "upstream_error", f"the upstream failed: {told}")


def _reason(error: Any) -> str:
    told = error.get("message") if isinstance(error, dict) else error
    return str(told)[:500]


def _choice(given: dict[str, Any]) -> dict[str, Any]:
    made = {"index": given.get("index", 0), "finish_reason": given.get("finish_reason")}
    for part in ("delta", "message"):
        if isinstance(given.get(part), dict):
            made[part] = _kept(given[part], SPOKEN)
    return made


def _kept(given: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}
