"""Asking a running service over HTTP: its health, its settings, its counts, and a reset.

Services listen on loopback, so no proxy that the environment names is asked for them.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any

from perflab.errors import ServiceBusy, StackError
from perflab.stacks.backend import HOST
from perflab.stacks.spec import Value

# A user who vanished is found out by the service only when its keep-alive has gone unanswered.
RESET_PATIENCE_S = 45.0
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def reset(port: int, path: str, check: Callable[[], None] = lambda: None) -> None:
    """POST to a service's reset; while it has users left it says 409, and is asked again.

    ``check`` is called before each time; what it raises ends the waiting.
    """
    deadline = time.monotonic() + RESET_PATIENCE_S
    while True:
        try:
            ask(port, path, method="POST")
            return
        except ServiceBusy:
            if time.monotonic() > deadline:
                raise
        check()
        time.sleep(0.1)


def answers(port: int, path: str, timeout_s: float = 2.0) -> bool:
    """Tell whether a GET is answered with 200 now."""
    try:
        with OPENER.open(f"http://{HOST}:{port}{path}", timeout=timeout_s) as answer:
            return bool(answer.status == 200)
    except (OSError, HTTPException):
        return False


def ask(
    port: int, path: str, body: Mapping[str, Value] | None = None, method: str = ""
) -> dict[str, Any]:
    """GET, or PUT when a body is given, and return the JSON object that comes back."""
    request = urllib.request.Request(
        f"http://{HOST}:{port}{path}",
        data=json.dumps(dict(body)).encode() if body is not None else None,
        method=method or ("PUT" if body is not None else "GET"),
        headers={"Content-Type": "application/json"},
    )
    try:
        with OPENER.open(request, timeout=10) as answer:
            return dict(json.loads(answer.read() or b"{}"))
    except urllib.error.HTTPError as error:
        text = f"http://{HOST}:{port}{path}: {error}: {error.read(500).decode(errors='replace')}"
        raise (ServiceBusy if error.code == 409 else StackError)(text) from None
    except (OSError, ValueError, HTTPException) as error:
        raise StackError(f"http://{HOST}:{port}{path}: {error}") from None
