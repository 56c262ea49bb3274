"""The lean client with a jar of cookies for each user; without it none is kept."""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from email.message import Message
from http.cookiejar import Cookie, CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.request import Request as Asked

from perflab.load.client import LeanClient
from perflab.load.connection import Connection
from perflab.load.exchange import Exchange
from perflab.load.head import headers
from perflab.load.prepared import Prepared

# As many as a browser keeps for a site, and then some: a server must not fill the memory.
MOST_COOKIES = 300
_GIVEN = re.compile(rb"\r\ncookie:[ \t]*([^\r]*)", re.IGNORECASE)
HEAD_END = b"\r\n\r\n"


class _Policy(DefaultCookiePolicy):
    """The usual rules, and no more cookies than a user keeps."""

    def __init__(self, kept: UserCookies) -> None:
        # A cookie without a domain is its host's alone (RFC 6265, 5.4).
        super().__init__(strict_ns_domain=DefaultCookiePolicy.DomainStrictNonDomain)
        self._kept = kept

    def set_ok(self, cookie: Cookie, request: Asked) -> bool:
        return len(self._kept) < MOST_COOKIES and super().set_ok(cookie, request)


class UserCookies:
    """What one user keeps of the cookies that servers set."""

    def __init__(self) -> None:
        # A jar is made once a server sets a cookie: many users, and servers that set none.
        self._jar: CookieJar | None = None

    def __len__(self) -> int:
        return 0 if self._jar is None else len(self._jar)

    def take(self, url: str, values: Sequence[str]) -> None:
        """Keep what the ``Set-Cookie`` headers of an answer from ``url`` say."""
        if not values:
            return
        if self._jar is None:
            self._jar = CookieJar(_Policy(self))
        self._jar.extract_cookies(_Answered(values), Asked(url))  # type: ignore[arg-type]

    def line(self, url: str, but: frozenset[str] = frozenset()) -> str:
        """Return what goes into ``Cookie`` for ``url``, without the names in ``but``."""
        if not len(self):
            return ""
        asked = Asked(url)
        assert self._jar is not None
        self._jar.add_cookie_header(asked)
        pairs = (asked.get_header("Cookie") or "").split("; ")
        return "; ".join(pair for pair in pairs if pair.partition("=")[0] not in but)


class _Answered:
    """An answer, as far as a jar asks for it."""

    def __init__(self, values: Sequence[str]) -> None:
        self._headers = Message()
        for value in values:
            self._headers["Set-Cookie"] = value

    def info(self) -> Message:
        return self._headers


class Dressed(Prepared):
    """A prepared request with a user's cookies, for one time; ``plain`` is without them."""

    plain: Prepared

    @classmethod
    def of(cls, plain: Prepared, cookies: UserCookies) -> Dressed:
        """Return ``plain`` with what a user's cookies are when it is sent."""
        made = cls.__new__(cls)
        made.__dict__.update(copy.copy(plain.__dict__))
        made.plain = plain
        made.turn = made._once(cookies)  # type: ignore[assignment]
        # Every answer may set another cookie: none is taken for the last one.
        made.repeats = made.unwatched = False
        made.last_bytes = b""
        return made

    def _once(self, cookies: UserCookies) -> Iterator[bytes]:
        turn = self.plain.turn
        self.bare = self.plain.payload if turn is None else next(turn)
        path = self.bare.split(b" ", 2)[1].decode("latin-1")
        yield with_cookies(self.bare, cookies, url_of(self.plain, path))


def url_of(prepared: Prepared, path: str) -> str:
    """Return the address that a request goes to."""
    return f"{prepared.origin.scheme}://{prepared.origin.authority}{path}"


def with_cookies(payload: bytes, cookies: UserCookies, url: str) -> bytes:
    """Return a request's bytes with a user's cookies; those that it names itself come first."""
    head, end, body = payload.partition(HEAD_END)
    given = _GIVEN.search(head)
    fixed = given[1].decode("latin-1") if given else ""
    names = frozenset(pair.strip().partition("=")[0] for pair in fixed.split(";"))
    line = cookies.line(url, names).encode("latin-1")
    if not line:
        return payload
    if given is None:
        return head + b"\r\nCookie: " + line + end + body
    return head[: given.end()] + b"; " + line + head[given.end() :] + end + body


class CookieClient(LeanClient):
    """Every user has cookies of its own: what a server set goes with its next requests."""

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self._cookies: defaultdict[int, UserCookies] = defaultdict(UserCookies)

    def submit(self, exchange: Exchange) -> None:
        """Send a request with the cookies of its user."""
        plain = _plain(exchange.prepared)
        exchange.prepared = Dressed.of(plain, self._cookies[exchange.user])
        super().submit(exchange)

    def finished(self, connection: Connection, exchange: Exchange, keep: bool) -> None:
        """Keep the cookies of the answer, also of one that is a redirect."""
        dressed = exchange.prepared
        exchange.prepared = _plain(dressed)
        if exchange.status and isinstance(dressed, Dressed):
            # What a redirect repeats is found by the bytes that were prepared.
            connection.note_sent(dressed.bare)
            found = headers(connection.head(), "set-cookie")
            if found:
                path = dressed.bare.split(b" ", 2)[1].decode("latin-1")
                self._cookies[exchange.user].take(url_of(dressed, path), found)
        super().finished(connection, exchange, keep)


def _plain(prepared: Prepared) -> Prepared:
    return prepared.plain if isinstance(prepared, Dressed) else prepared
