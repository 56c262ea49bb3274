"""Scripted users: what one user does, as a Python class.

    from perflab.load.users import User, action

    class Shopper(User):
        wait_s = (1.0, 3.0)

        async def on_start(self):
            answer = await self.post("/login", {"name": f"user{self.number}"})
            self.headers["Authorization"] = f"Bearer {answer.json()['token']}"

        @action(weight=9)
        async def browse(self):
            await self.get("/items", name="items")

        @action
        async def buy(self):
            await self.post("/orders", {"item": self.random.randrange(100)})

Every request is recorded like any other. The first request of an action is planned for the instant
at which the action was due, so a late client is charged for its lateness; each further request is
planned for the instant at which the one before was done. The wait for the next action begins when
the last answer arrived, not when a busy client noticed it; the time that the script itself took
after that is added.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from perflab.errors import ParameterError
from perflab.load.address_secrets import without_credentials
from perflab.load.clients.body import TOO_LARGE
from perflab.load.clients.exchange import Exchange, Prepared
from perflab.load.clients.outcome import CODES, ERRORS, Failed
from perflab.load.clients.response import header, values
from perflab.load.clients.targets import Origin
from perflab.load.workload.request import Connections, Request
from perflab.parameters import did_you_mean

if TYPE_CHECKING:
    from perflab.load.clients.connection import Connection
    from perflab.load.clients.websocket import OnClosed, OnMessage, WebSocket
    from perflab.load.records.message_record import MessageRecorder

Action = TypeVar("Action", bound=Callable[..., Awaitable[None]])
WEIGHT = "_perflab_weight"
# The names that scripts import.
__all__ = ["NotServed", "Reply", "User", "action", "actions"]


@overload
def action(weight: Action) -> Action: ...
@overload
def action(weight: float = 1.0) -> Callable[[Action], Action]: ...
def action(weight: Any = 1.0) -> Any:
    """Mark a method as an action, chosen in proportion to its weight."""
    if callable(weight):
        setattr(weight, WEIGHT, 1.0)
        return weight

    def mark(method: Action) -> Action:
        if not weight > 0:
            raise ParameterError("action", [f"weight {weight!r} is not above 0"])
        setattr(method, WEIGHT, float(weight))
        return method

    return mark


def actions(kind: type) -> tuple[list[str], list[float]]:
    """Return the names of a class's actions and their weights; raise ParameterError without any."""
    weights = {name: getattr(getattr(kind, name), WEIGHT, 0.0) for name in dir(kind)}
    names = [name for name, weight in weights.items() if weight]
    if not names:
        raise ParameterError("script", [f"{kind.__name__} has no method marked with @action"])
    return names, [weights[name] for name in names]


@dataclass(frozen=True)
class Reply:
    """A reply to a user's request; ``error`` is its error class, empty when it is as expected.

    ``body`` is unpacked by its Content-Encoding, and empty where the request keeps none.
    """

    status: int
    error: str
    head: bytes = b""
    body: bytes = field(default=b"", repr=False)

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return not self.error

    def json(self) -> Any:
        """Return the body's JSON.

        Where none came, raises NotServed if the request failed, and ValueError if it did not.
        """
        try:
            return json.loads(self.body)
        except ValueError:
            if self.error:
                too_large = self.error == "body_too_large"
                why = f"the request failed ({self.error}), and no JSON came"
                raise NotServed(self.error, TOO_LARGE if too_large else why) from None
            if self.body:
                raise
            why = "there is no body to read JSON from: keep_body=False keeps none"
            raise ValueError(why) from None

    def header(self, name: str) -> str:
        """Return a header's first value, or an empty string."""
        return header(self.head, name)

    def cookies(self) -> dict[str, str]:
        """Return the cookies that the answer sets, by name, without their attributes."""
        set_by = values(self.head, "set-cookie")
        pairs = (value.partition(";")[0].partition("=") for value in set_by)
        return {name.strip(): value.strip() for name, _, value in pairs}


class NotServed(Failed):
    """A script raises it when it cannot go on because of what the server did.

    ``kind`` is the error class under which the step is recorded; an unknown one raises
    ParameterError. Any other exception counts as a fault of the script (``script``).
    """

    def __init__(self, kind: str, reason: str) -> None:
        if kind not in CODES:
            problem = f"'{kind}' is no error class{did_you_mean(kind, CODES)}; {reason}"
            raise ParameterError("NotServed", [problem])
        super().__init__(kind, reason)


def _is_over(attributes: Mapping[str, str]) -> bool:
    """Return whether a cookie's attributes end it (RFC 6265, 5.2)."""
    try:
        if "max-age" in attributes:
            return int(attributes["max-age"]) <= 0
        ends = parsedate_to_datetime(attributes.get("expires", ""))
        return ends.replace(tzinfo=ends.tzinfo or UTC) < datetime.now(UTC)
    except ValueError:
        return False


class Driver(Protocol):
    """What lets users act, as they know it: the clock, the way to the server, and the record."""

    origin: Origin
    life: Connections
    messages: MessageRecorder
    began_ns: int

    def now_ns(self) -> int:
        """Return the present instant."""

    async def until(self, due_ns: int) -> bool:
        """Wait until an instant; return whether the load goes on."""

    def send(self, exchange: Exchange, name: str, planned_ns: int) -> None:
        """Send a request."""

    def ended(self, exchange: Exchange) -> None:
        """Record a request that is done, or was given up."""

    def note_failure(self, user: User, began_ns: int, kind: str, name: str = "script") -> None:
        """Record that a user failed."""

    async def connect(
        self,
        path: str,
        on_message: OnMessage,
        on_closed: OnClosed,
        deflate: bool,
        headers: Mapping[str, str],
    ) -> WebSocket:
        """Open a WebSocket."""


@dataclass
class Course:
    """The state of a user in its load; the driver keeps it.

    ``due_ns`` is the planned instant of the user's present step, ``late_ns`` how much later the
    script went on by the client's fault, ``over_ns`` when the last action was over.
    """

    driver: Driver = field(init=False)
    due_ns: int = 0
    late_ns: int = 0
    over_ns: int = 0


class User:
    """One user; subclass it and mark actions with :func:`action`.

    Between the end of an action and the next lie ``wait_s`` seconds, constant or uniform between
    two; or from one action's planned instant to the next ``pacing_s``. ``number`` is the user's
    own, from 0; ``random`` is seeded by it and the workload's seed. ``parameters`` are the
    workload's for the script; ``headers`` are sent with every request of this user, and so are its
    ``cookies``, which answers set and end; a header ``Cookie`` goes in their place.
    """

    wait_s: float | Sequence[float] = 0.0
    pacing_s: float = 0.0

    def __init__(self, number: int, seed: int, parameters: Mapping[str, Any]) -> None:
        self.number = number
        self.random = random.Random(f"{seed}/{number}")
        self.parameters = parameters
        self.headers: dict[str, str] = {}
        self.cookies: dict[str, str] = {}
        self.course = Course()
        self._connection: Connection | None = None

    async def on_start(self) -> None:
        """Run once, before the first action (a login, say)."""

    async def on_stop(self) -> None:
        """Run once, at the user's end."""

    @property
    def due_ns(self) -> int:
        """Return the planned instant of the user's present step."""
        return self.course.due_ns

    @property
    def load_began_ns(self) -> int:
        """Return the instant at which the load began."""
        return self.course.driver.began_ns

    @staticmethod
    def now_ns() -> int:
        """Return the present instant, by the clock of every record."""
        return time.monotonic_ns()

    def first_due_ns(self) -> int:
        """Return when the first action is due (called after ``on_start``); 0: one wait later."""
        return 0

    def leaves_ns(self) -> int:
        """Return until when the user stays after the last action; 0: not at all."""
        return 0

    def wait(self) -> float:
        """Return the seconds until the next action; override it for other distributions."""
        if isinstance(self.wait_s, Sequence):
            return self.random.uniform(*self.wait_s)
        return self.wait_s

    async def pause(self, seconds: float) -> bool:
        """Wait within an action; return whether the load still goes on.

        The pause begins when the last answer arrived, and the next request is planned for its end,
        so that a client that wakes late is charged for it. A pause ends with the load.
        """
        if not seconds >= 0:
            raise ValueError(f"a pause of {seconds} s: it must not be below 0")
        course, driver = self.course, self.course.driver
        due_ns = driver.now_ns() - course.late_ns + round(seconds * 1e9)
        goes_on = await driver.until(due_ns)
        # The end of the load may have cut it off.
        now_ns = driver.now_ns()
        course.due_ns, course.late_ns = min(due_ns, now_ns), max(0, now_ns - due_ns)
        return goes_on

    async def get(self, path: str, **options: Any) -> Reply:
        """Send a GET; see :meth:`request`."""
        return await self.request("GET", path, **options)

    async def post(self, path: str, body: Any = "", **options: Any) -> Reply:
        """Send a POST; a body that is no text is sent as JSON; see :meth:`request`."""
        if not isinstance(body, str):
            body = json.dumps(body)
        return await self.request("POST", path, body=body, **options)

    async def request(
        self,
        method: str,
        path: str,
        *,
        name: str = "",
        body: str = "",
        headers: Mapping[str, str] | None = None,
        expect_status: int | str | Sequence[int] = 200,
        expect_body: str = "",
        keep_body: bool = True,
        **judged: int | str | None,
    ) -> Reply:
        """Send a request and record it under ``name`` (default: method and path).

        ``judged`` are further fields of :class:`~perflab.load.workload.request.Request` on the
        body of the answer: ``expect_bytes``, ``expect_crc32``, ``progress_points``, ``stream``,
        ``min_chunks``, ``end_marker``.

        A body that is kept may have 64 MiB; with ``keep_body=False`` none is kept, of any length.
        """
        words = {
            "method": method, "path": path, "headers": self._sent(headers or {}),
            "body": body, "expect_status": expect_status, "expect_body": expect_body, **judged,
        }  # fmt: skip
        driver = self.course.driver
        prepared = Prepared(Request.model_validate(words), driver.origin, driver.life)
        prepared.want_reply(keep_body)
        prepared.after_redirect = partial(self._after_redirect, headers or {})
        return await self._perform(prepared, name or f"{method} {without_credentials(path)}")

    def _sent(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request, with the cookies that are kept."""
        sent = {**self.headers, **headers}
        if self.cookies and "cookie" not in map(str.lower, sent):
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return sent

    def _keep_cookies(self, head: bytes) -> None:
        """Keep the cookies that an answer sets, whatever their path, and drop those it ends."""
        for text in values(head, "set-cookie"):
            pair, *rest = text.split(";")
            name, _, value = (part.strip() for part in pair.partition("="))
            attributes = (part.strip().partition("=") for part in rest)
            if _is_over({word.lower(): told for word, _, told in attributes}):
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value

    def _after_redirect(self, headers: Mapping[str, str], head: bytes) -> dict[str, str]:
        """Keep the cookies of a redirect; return the headers of the request that follows it."""
        self._keep_cookies(head)
        return self._sent(headers)

    async def _perform(self, prepared: Prepared, name: str) -> Reply:
        course, driver = self.course, self.course.driver
        over = asyncio.Event()
        exchange = Exchange(prepared, self.number, lambda _: over.set())
        exchange.connection, self._connection = self._connection, None
        driver.send(exchange, name, course.due_ns)
        try:
            await over.wait()
        finally:
            driver.ended(exchange)
        course.due_ns = exchange.done_ns
        course.late_ns = driver.now_ns() - exchange.done_ns
        connection, exchange.connection = exchange.connection, None
        if self._connection is None:
            self._connection = connection
        elif connection is not None:
            connection.close()
        head, content = exchange.reply or (b"", b"")
        self._keep_cookies(head)
        return Reply(exchange.status, ERRORS[exchange.error], head, content)

    async def websocket(
        self,
        path: str,
        on_message: Callable[[bytes, int], None],
        *,
        deflate: bool = False,
        headers: Mapping[str, str] | None = None,
        on_closed: Callable[[str, int], None] | None = None,
    ) -> WebSocket:
        """Open a WebSocket to the load's target.

        ``on_message`` gets each message and the instant (ns) at which its bytes were read.
        ``on_closed`` gets the error class and code of the end; without it, an end with an error
        class is recorded as a failure. Raises WebSocketError.
        """
        sent = self._sent(headers or {})
        on_closed = on_closed or self._note_end
        return await self.course.driver.connect(path, on_message, on_closed, deflate, sent)

    def _note_end(self, kind: str, _code: int) -> None:
        if kind:
            self.course.driver.note_failure(self, self.now_ns(), kind, "websocket")

    def note(self, direction: int, size: int, at_ns: int, key: int = 0, kind: str = "") -> None:
        """Record a message of a stream (``message_record.SENT`` or ``RECEIVED``).

        ``kind`` is a word of the script's own, like ``delivery``: see the ``messages`` table.
        ``at_ns``: when the script began to send, or the instant that ``on_message`` got; see
        :class:`perflab.load.records.message_record.MessageRecorder`.
        """
        self.course.driver.messages.add(at_ns, self.number, direction, size, key, kind)
