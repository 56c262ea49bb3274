"""Speaks HTTP with residents, past the environment's proxies."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from perflab.errors import MachineShort, StackError
from perflab.host.shortages import told
from perflab.stacks.backend import HOST
from perflab.stacks.spec import Value

ANSWERS_WITHIN_S, KEPT_S = 10.0, 0.3
ANSWER_BYTES = 16 * 1024 * 1024


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Returns a redirect as the answer: following it could lead to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _LastResponse(http.client.HTTPResponse):
    """The response after all interim ones (RFC 9110, 15.2): 103 is none, as little as 100."""

    def begin(self) -> None:
        super().begin()
        while 101 < self.status < 200:
            # Without headers it has not begun yet.
            vars(self)["headers"] = None
            super().begin()


class _Connection(http.client.HTTPConnection):
    response_class = _LastResponse


class _SecureConnection(http.client.HTTPSConnection):
    response_class = _LastResponse


class _Connecting(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Sends requests, and returns the last response of each."""

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SecureConnection, req)


OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects(), _Connecting())


def status_of(port: int, path: str, timeout_s: float = ANSWERS_WITHIN_S) -> int | None:
    """Return the status that a GET is answered with; None where nobody answers in time.

    The body is not read: that of a stream of events has no end. Raises MachineShort where it cannot
    be asked.
    """
    try:
        with _reply(port, "GET", path, None, timeout_s) as reply:
            return int(reply.status)
    except MachineShort:
        raise
    except StackError:
        return None


def keeps_connections(port: int) -> bool:
    """Tell whether a connection is accepted, and not closed at once.

    The proxy of a container engine accepts before the server in the container listens, and closes.
    """
    try:
        with socket.create_connection((HOST, port), ANSWERS_WITHIN_S) as connection:
            connection.settimeout(KEPT_S)
            return bool(connection.recv(1))
    except TimeoutError:
        return True
    except OSError:
        return False


def ask(port: int, path: str, body: Mapping[str, Value] | None = None) -> dict[str, Any]:
    """GET, or PUT when a body is given, and return the JSON object that comes back.

    Raises StackError where there is no answer, no success, or no JSON object.
    """
    status, text = exchange(port, "GET" if body is None else "PUT", path, body, ANSWERS_WITHIN_S)
    where = f"http://{HOST}:{port}{path}"
    if not 200 <= status < 300:
        raise StackError(f"{where}: HTTP Error {status}: {text[:500]}")
    try:
        return dict(json.loads(text or "{}"))
    except (ValueError, TypeError):
        raise StackError(f"{where} did not answer with a JSON object: {text[:500]}") from None


def exchange(port: int, method: str, path: str, body: Any, timeout_s: float) -> tuple[int, str]:
    """Send one request and return status and text, of errors too; ``body`` None sends no JSON.

    Raises StackError where nobody answers in time.
    """
    with _reply(port, method, path, body, timeout_s) as reply:
        return int(reply.status), reply.read(ANSWER_BYTES).decode(errors="replace")


@contextmanager
def _reply(port: int, method: str, path: str, body: Any, timeout_s: float) -> Iterator[Any]:
    """Send one request, and give the reply, of an error too, with its body unread."""
    request = urllib.request.Request(
        f"http://{HOST}:{port}{path}",
        data=None if body is None else json.dumps(body).encode(),
        method=method,
        headers={"Content-Type": "application/json"},
    )
    try:
        try:
            reply = OPENER.open(request, timeout=timeout_s)
        except urllib.error.HTTPError as error:
            reply = error
        with reply:
            yield reply
    except (OSError, ValueError, http.client.HTTPException) as error:
        if shortage := told(error):
            raise MachineShort(
                f"{method} http://{HOST}:{port}{path} not sent: {shortage}"
            ) from None
        raise StackError(f"http://{HOST}:{port}{path}: {error}") from None
