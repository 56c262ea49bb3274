"""A request prepared for sending, and one request under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Protocol
from urllib.parse import urljoin

from perflab.errors import ParameterError, TargetRefused
from perflab.load.clients.body import STATUS, Body, BodyRules, HeadAndBody
from perflab.load.clients.outcome import CODES, MEASURE
from perflab.load.clients.streams import Streamed
from perflab.load.clients.targets import Origin, refuse_foreign, split
from perflab.load.records.arrival_points import ArrivalPoints
from perflab.load.workload.request import Connections, Request

ENDLESS = Connections()
# Error codes of whole answers, as expected or not: any of them may be a redirect.
OF_WHOLE_REPLIES = {
    CODES[name] for name in ("", "status", "body", "length", "checksum", "encoding", "decoding")
}
REDIRECTS = (301, 302, 303, 307, 308)
# Headers that are not sent on to another origin: above all, secrets.
OF_ORIGINS = frozenset({"authorization", "cookie", "host", "proxy-authorization"})


class Prepared:
    """The bytes of a request (``payload``), or what gives those of a user's next one (``turn``).

    ``last_bytes`` and ``last_outcome`` hold the last response that arrived whole in one piece:
    the same bytes have the same outcome and are not parsed again. Text that is no UTF-8 raises
    ParameterError.
    """

    def __init__(self, request: Request, origin: Origin, life: Connections = ENDLESS) -> None:
        self.request = request
        self.origin = origin
        try:
            payloads = [render(request, body, origin, life.closing) for body in request.bodies]
            text = request.expect_body.encode()
        except UnicodeEncodeError as error:
            raise ParameterError("request", [f"UTF-8 cannot encode its text: {error}"]) from None
        self.payload = payloads[0]
        self.turn: Callable[[int], bytes] | None = None
        if len(payloads) > 1:
            bodies = cycle(payloads)
            self.turn = lambda _user: next(bodies)
        self.wants_reply = False
        # Takes the head of a redirect, and returns the headers of the request that follows it.
        self.after_redirect: Callable[[bytes], Mapping[str, str]] | None = None
        # Any status is expected where there are none.
        self.statuses = request.statuses
        self.redirects = request.redirects
        self.progress_points = request.progress_points
        # Whether equal bytes may skip the parser. To follow a redirect takes the headers, to hand
        # an answer on its bytes, and to note arrivals each piece.
        self.repeats = not (request.redirects or request.progress_points or request.stream)
        # Whether the client has nothing to do when a user's own connection has an answer.
        self.unwatched = not (request.redirects or life.closing)
        stream = request.streaming
        self.streams = stream is not None
        rules = BodyRules(text, request.expect_crc32, request.expect_bytes, stream=stream)
        self.body_rules = rules if rules != BodyRules() else None
        self.last_bytes = b""
        self.last_outcome: tuple[int, int, int, dict[str, float] | None, int] = (0, 0, 0, None, 0)
        # Whether each answer is held against what the request expects of its body.
        self.is_judged = request.is_judged

    def want_reply(self, keep_body: bool) -> None:
        """Hand the answer on to the user, with its body or without."""
        self.wants_reply = True
        self.repeats = False
        if keep_body:
            self.body_rules = replace(self.body_rules or BodyRules(), kept=True)

    def judge(self, status: int, body: Body | None) -> int:
        """Return the error code of a complete response; 0 when it is as expected."""
        if self.statuses and status not in self.statuses:
            return STATUS
        return body.fault if body is not None else 0


def render(request: Request, body: bytes, origin: Origin, closing: bool) -> bytes:
    """Return the bytes of an HTTP/1.1 request with a body (RFC 9112, 2.1)."""
    named = {name.lower() for name in request.headers}
    headers = dict(request.headers)
    if "host" not in named:
        headers = {"Host": origin.authority, **headers}
    if (body or request.method in ("POST", "PUT", "PATCH")) and "content-length" not in named:
        headers["Content-Length"] = str(len(body))
    if body and "content-type" not in named:
        headers["Content-Type"] = request.usual_type
    if closing and "connection" not in named:
        headers["Connection"] = "close"
    lines = [f"{request.method} {request.path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("utf-8") + body


def followed(
    base: Prepared,
    location: str,
    number: int,
    life: Connections,
    allowed: Sequence[str],
    head: bytes = b"",
) -> Prepared:
    """Return the request that follows the ``number``th redirect of a chain (RFC 9110, 15.4).

    ``head`` is that of the redirect: scripted users keep its cookies. Raise TargetRefused or
    ValueError for one too many, or one that leads nowhere or elsewhere.
    """
    if number > base.redirects:
        raise TargetRefused(f"more than {base.redirects} redirects")
    if not location:
        raise TargetRefused("a redirect without a location")
    request = base.request
    url = urljoin(f"{base.origin.scheme}://{base.origin.authority}{request.path}", location)
    refuse_foreign(url, allowed)
    origin, path = split(url)
    if origin.scheme not in ("http", "https"):
        raise TargetRefused(f"a redirect to an address of {origin.scheme}")
    given = base.after_redirect(head) if base.after_redirect else request.headers
    dropped = OF_ORIGINS if origin != base.origin else frozenset()
    headers = {name: value for name, value in given.items() if name.lower() not in dropped}
    changed = {"path": path, "headers": headers}
    following = Prepared(Request.model_validate(request.model_dump() | changed), origin, life)
    following.wants_reply, following.repeats = base.wants_reply, base.repeats
    following.body_rules = base.body_rules
    # A chain that left its origin gets the secrets of that origin no more.
    following.after_redirect = base.after_redirect if origin == base.origin else None
    return following


class Carrier(Protocol):
    """The connection that a user keeps between requests; ``usable`` until it was closed."""

    origin: Origin
    usable: bool

    def send(self, exchange: Exchange) -> None:
        """Send the exchange's request."""

    def close(self) -> None:
        """Close it for good."""


@dataclass(slots=True, eq=False, repr=False)
class Exchange:
    """One request under way: its instants (CLOCK_MONOTONIC, ns; 0: never came) and outcome.

    It is made once per user or slot and used again; ``finish`` is called when it is done.
    ``kept`` is the number of the kept answer with the same bytes, 0 for none (``kept_replies``).
    ``reply`` is the head and body of the response, where the request wants them; ``progress`` has
    the points of the body's arrival, ``stream`` its chunks. ``chain`` keeps the request that began
    a chain of redirects, the instant of its sending, and how long it took to connect.
    """

    prepared: Prepared
    user: int
    finish: Callable[[Exchange], None]
    stage: int = MEASURE
    template: int = 0
    connection: Carrier | None = None
    planned_ns: int = 0
    started_ns: int = 0
    sent_ns: int = 0
    first_byte_ns: int = 0
    done_ns: int = 0
    connect_ns: int = 0
    close_ns: int = 0
    status: int = 0
    bytes: int = 0
    error: int = 0
    kept: int = 0
    redirects: int = 0
    phases: dict[str, float] | None = None
    chain: tuple[Prepared, int, int] | None = None
    reply: HeadAndBody | None = None
    progress: ArrivalPoints | None = None
    stream: Streamed | None = None

    def renew(self) -> None:
        """Reset the instants that the next request may not reach; its end sets the rest."""
        self.sent_ns = self.first_byte_ns = self.connect_ns = self.close_ns = 0
        self.progress = self.stream = None

    def end_chain(self) -> None:
        """Restore the request that began a chain of redirects, and the instant of its sending."""
        if self.chain is not None:
            self.prepared, self.sent_ns, self.connect_ns = self.chain
            self.chain = None
            self.redirects = 0
