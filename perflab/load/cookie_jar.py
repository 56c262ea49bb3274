"""A user's cookies: what servers set, and what goes with which request (RFC 6265).

The rules of domain, path, time and ``Secure`` are those of Python's ``http.cookiejar``.
"""

from __future__ import annotations

from collections.abc import Sequence
from email.message import Message
from http.cookiejar import Cookie, CookieJar, DefaultCookiePolicy
from urllib.request import Request as Asked

# As many as a browser keeps for a site, and then some: a server must not fill the memory.
MOST_COOKIES = 300


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
