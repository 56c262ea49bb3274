"""One request under way: the record that travels with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from perflab.errors import ParameterError, TargetRefused
from perflab.load.clients.answer import Body, Wanted
from perflab.load.clients.outcome import CODES, MEASURE
from perflab.load.clients.streams import Streamed
from perflab.load.clients.targets import Origin, refuse_foreign, split
from perflab.load.records.progress import Progress
from perflab.load.workload.request import Connections, Request

if TYPE_CHECKING:
    from perflab.load.clients.connection import Connection

ENDLESS = Connections()
STATUS, LENGTH = CODES["status"], CODES["length"]
# A whole answer, as expected or not: it may be a redirect.
WHOLE = {CODES[name] for name in ("", "status", "body", "length", "checksum")}
REDIRECTS = (301, 302, 303, 307, 308)
# Headers that a redirect to another origin leaves behind: secrets, above all.
OF_ORIGINS = frozenset({"authorization", "cookie", "host", "proxy-authorization"})


class Prepared:
    """The bytes of a request (``payload``), or of one per body (``turn``).

    ``last_bytes`` and ``last_outcome`` hold the last response that arrived whole in one piece:
    the same bytes again mean the same outcome, without parsing them again.

    Raises
    ------
    ParameterError
        It holds what UTF-8 cannot.
    """

    def __init__(self, request: Request, origin: Origin, life: Connections = ENDLESS) -> None:
        self.request = request
        self.origin = origin
        try:
            payloads = [render(request, body, origin, life.closing) for body in request.bodies]
            text = request.expect_body.encode()
        except UnicodeEncodeError as error:
            raise ParameterError("request", [f"it holds what UTF-8 cannot: {error}"]) from None
        self.payload = payloads[0]
        self.turn = cycle(payloads) if len(payloads) > 1 else None
        self.wants_answer = False
        self.redirects = request.redirects
        self.progress_points = request.progress_points
        # The same bytes again mean the same: but to follow a redirect takes its headers, to hand an
        # answer on its bytes, and whoever notes when they came looks at each.
        self.repeats = not (request.redirects or request.progress_points or request.stream)
        # Nobody but the user has to know of an answer on the connection that it keeps.
        self.unwatched = not (request.redirects or life.closing)
        stream = request.streaming
        self.streams = stream is not None
        wanted = Wanted(text, request.expect_crc32, stream=stream)
        self.wanted = wanted if wanted != Wanted() else None
        self.last_bytes = b""
        self.last_outcome: tuple[int, int, int, dict[str, float] | None] = (0, 0, 0, None)

    def want_answer(self, keep_body: bool) -> None:
        """Have the answer handed on, with its body or without."""
        self.wants_answer = True
        self.repeats = False
        if keep_body:
            self.wanted = replace(self.wanted or Wanted(), kept=True)

    def judge(self, status: int, size: int, body: Body | None) -> int:
        """Return the error code of a complete response; 0 when it is as expected."""
        request = self.request
        if request.expect_status and status != request.expect_status:
            return STATUS
        if request.expect_bytes >= 0 and size != request.expect_bytes:
            return LENGTH
        return body.fault if body is not None else 0


def render(request: Request, body: bytes, origin: Origin, closing: bool) -> bytes:
    """Return the bytes of an HTTP/1.1 request with a body (RFC 9112, 2.1)."""
    given = {name.lower() for name in request.headers}
    headers = dict(request.headers)
    if "host" not in given:
        headers = {"Host": origin.authority, **headers}
    if (body or request.method in ("POST", "PUT", "PATCH")) and "content-length" not in given:
        headers["Content-Length"] = str(len(body))
    if body and "content-type" not in given:
        headers["Content-Type"] = request.usual_type
    if closing and "connection" not in given:
        headers["Connection"] = "close"
    lines = [f"{request.method} {request.path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("utf-8") + body


def followed(
    base: Prepared, location: str, number: int, life: Connections, allowed: Sequence[str]
) -> Prepared:
    """Return the request that follows the ``number``th redirect of a chain (RFC 9110, 15.4).

    Raises
    ------
    TargetRefused, ValueError
        It is one too many, leads nowhere, or to a host that is not allowed.
    """
    if number > base.redirects:
        raise TargetRefused("too many redirects")
    if not location:
        raise TargetRefused("a redirect to nowhere")
    request = base.request
    url = urljoin(f"{base.origin.scheme}://{base.origin.authority}{request.path}", location)
    refuse_foreign(url, allowed)
    origin, path = split(url)
    if origin.scheme not in ("http", "https"):
        raise TargetRefused(f"a redirect to {origin.scheme}")
    dropped = OF_ORIGINS if origin != base.origin else frozenset()
    headers = {
        name: value for name, value in request.headers.items() if name.lower() not in dropped
    }
    changed = {"path": path, "headers": headers}
    made = Prepared(Request.model_validate(request.model_dump() | changed), origin, life)
    made.wants_answer, made.repeats, made.wanted = base.wants_answer, base.repeats, base.wanted
    return made


class Exchange:
    """One request under way: its instants (CLOCK_MONOTONIC, ns; 0: never came) and outcome.

    Made once per user or slot and used again; ``finish`` is called when it is done. ``answer`` is
    the head of the response and its body, where the request wants them; ``progress`` the points of
    its body's arrival, ``stream`` the chunks of it.
    """

    __slots__ = (
        "answer",
        "bytes",
        "chain",
        "close_ns",
        "connect_ns",
        "connection",
        "done_ns",
        "error",
        "finish",
        "first_byte_ns",
        "phases",
        "planned_ns",
        "prepared",
        "progress",
        "redirects",
        "sent_ns",
        "stage",
        "started_ns",
        "status",
        "stream",
        "template",
        "user",
    )

    def __init__(self, prepared: Prepared, user: int, finish: Callable[[Exchange], None]) -> None:
        self.prepared = prepared
        self.user = user
        self.finish = finish
        self.stage = MEASURE
        self.template = 0
        self.connection: Connection | None = None
        self.planned_ns = self.started_ns = self.done_ns = 0
        self.status = self.bytes = self.error = self.redirects = 0
        self.phases: dict[str, float] | None = None
        self.chain: tuple[Prepared, int, int] | None = None
        self.answer: tuple[bytes, bytes] | None = None
        self.progress: Progress | None = None
        self.stream: Streamed | None = None
        self.renew()

    def renew(self) -> None:
        """Forget the instants that the next request may not come to; its end sets the rest."""
        self.sent_ns = self.first_byte_ns = self.connect_ns = self.close_ns = 0
        self.progress = self.stream = None

    def end_chain(self) -> None:
        """Give a chain of redirects the request it began with, and the instant of its sending."""
        if self.chain is not None:
            self.prepared, self.sent_ns, self.connect_ns = self.chain
            self.chain = None
            self.redirects = 0
