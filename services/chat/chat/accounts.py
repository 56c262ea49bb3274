"""The pool of accounts, passwords that are really verified, and tokens of those who logged in.

All accounts have one password and so one hash: a pool of 500 would otherwise take minutes to
prepare. A login costs the same, because verifying depends on the hash alone.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable

import bcrypt
from specimen.refusal import Refused

PASSWORD = "correct horse"


def pool(size: int, login_hash: str, bcrypt_rounds: int) -> list[tuple[str, str]]:
    """Return name and password hash of every account; with ``none`` the password itself."""
    known = PASSWORD
    if login_hash == "bcrypt":
        known = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(bcrypt_rounds)).decode()
    return [(f"user{number}", known) for number in range(size)]


def is_password(password: str, known: str, login_hash: str) -> bool:
    """Verify a password against what is kept of it."""
    if login_hash == "none":
        return hmac.compare_digest(known.encode(), password.encode())
    try:
        return bcrypt.checkpw(password.encode(), known.encode())
    except ValueError:  # bcrypt takes 72 bytes; no account's password is longer
        return False


class Tokens:
    """Bearer tokens: random, kept as digests, valid until the next reset."""

    def __init__(self, known: Iterable[tuple[str, str]]) -> None:
        self._users = dict(known)

    def issue(self, user: str) -> tuple[str, str]:
        """Return a new token, and the digest that is kept of it."""
        token = secrets.token_urlsafe(24)
        digest = _digest_of(token)
        self._users[digest] = user
        return token, digest

    def user_of(self, token: str) -> str:
        """Return whose token it is; raises Refused (``wrong_token``) where it is nobody's."""
        user = self._users.get(_digest_of(token))
        if user is None:
            raise Refused(401, "wrong_token", "log in, and connect with the token that you get")
        return user

    def clear(self) -> None:
        """Forget all tokens."""
        self._users.clear()


def _digest_of(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
