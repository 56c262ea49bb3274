"""Bearer tokens: random, kept as digests, valid for a time, and still valid after a restart."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable

from chat.refusal import ExpiredToken, MissingToken, WrongToken

# For so long an expired token is still told from one that never was.
REMEMBERED_S = 3600.0


def digest_of(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


class Tokens:
    """All valid tokens, in the order in which they expire."""

    def __init__(self, ttl_s: float, known: Iterable[tuple[str, str, float]]) -> None:
        self._ttl_s = ttl_s
        self._known = {digest: (user, expires_s) for digest, user, expires_s in known}

    def issue(self, user: str) -> tuple[str, tuple[str, str, float]]:
        """Return a new token, and what to store of it: digest, user, end of its time."""
        now_s = time.time()
        self._forget(now_s)
        token = secrets.token_urlsafe(24)
        row = (digest_of(token), user, now_s + self._ttl_s)
        self._known[row[0]] = row[1:]
        return token, row

    def user_of(self, token: str | None) -> str:
        """Return whose token it is.

        Raises
        ------
        MissingToken, WrongToken, ExpiredToken
            It is nobody's, or no longer.
        """
        if not token:
            raise MissingToken("log in, then send the token: 'Authorization: Bearer' or ?token=")
        found = self._known.get(digest_of(token))
        if found is None:
            raise WrongToken("this token was never given out here")
        user, expires_s = found
        if time.time() >= expires_s:
            raise ExpiredToken("this token's time is over: log in again")
        return user

    def clear(self) -> None:
        """Forget all tokens."""
        self._known.clear()

    def _forget(self, now_s: float) -> None:
        # Every token lives equally long, so the first ones given out are the first to go.
        while self._known:
            digest, (_, expires_s) = next(iter(self._known.items()))
            if expires_s + REMEMBERED_S > now_s:
                return
            del self._known[digest]
