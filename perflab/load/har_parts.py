"""Headers and body of a HAR's request, as they may be sent again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

# Of the connection, of the message's framing, or made anew for each request.
NOT_SENT = frozenset(
    {
        "connection", "content-length", "expect", "host", "http2-settings", "keep-alive",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip
# Names of headers that hold what lets somebody in.
SECRET = re.compile(r"cookie|auth|token|secret|session|passw|credential|api-?key|csrf|xsrf", re.I)
FORM = "application/x-www-form-urlencoded"


def is_secret(name: str) -> bool:
    """Tell whether a header of this name may let somebody in."""
    return SECRET.search(name) is not None


def headers_sent(request: Mapping[str, Any], keep_secrets: bool) -> dict[str, str]:
    """Return the headers that make sense of a request that is sent again.

    Raises
    ------
    ValueError
        They are not a list of names and values.
    """
    listed = request.get("headers", [])
    if not isinstance(listed, list):
        raise ValueError("its headers are no list")
    found: dict[str, str] = {}
    names: dict[str, str] = {}
    for each in listed:
        name, value = _pair(each, "header")
        low = name.lower()
        if name.startswith(":") or low in NOT_SENT or (is_secret(name) and not keep_secrets):
            continue
        # HTTP/2 has cookies line by line.
        joint = "; " if low == "cookie" else ", "
        name = names.setdefault(low, name)
        found[name] = f"{found[name]}{joint}{value}" if name in found else value
    return found


def body_text(posted: Any) -> str:
    """Return the body of a request: its text, or its form.

    Raises
    ------
    ValueError
        It is neither.
    """
    if posted is None:
        return ""
    if not isinstance(posted, dict):
        raise ValueError("its postData is no object")
    text = posted.get("text")
    if isinstance(text, str) and text:
        return text
    listed = posted.get("params") or []
    if not isinstance(listed, list):
        raise ValueError("its postData.params is no list")
    kind = str(posted.get("mimeType") or FORM).partition(";")[0].strip().lower()
    if listed and kind != FORM:
        raise ValueError(f"its body of type {kind} was recorded without its text")
    return urlencode([_pair(each, "parameter") for each in listed])


def _pair(each: Any, what: str) -> tuple[str, str]:
    if not isinstance(each, dict) or not isinstance(each.get("name"), str):
        raise ValueError(f"a {what} has no name")
    return each["name"], str(each.get("value", ""))
