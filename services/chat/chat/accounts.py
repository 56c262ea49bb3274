"""The pool of accounts, passwords that are really verified, and tokens of those who logged in.

All accounts have one password and so one hash: a pool of 500 would otherwise take minutes to
prepare. A login costs the same, because verifying depends on the hash alone.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from chat.refusals import Refused

PASSWORD = "correct horse"


@dataclass(frozen=True)
class Hashing:
    """How passwords are hashed: ``verify(hash, password)``."""

    hash: Callable[[str], str]
    verify: Callable[[str, str], bool]


def bcrypt_hashing(rounds: int) -> Hashing:
    """Return bcrypt with 2 to the power of ``rounds`` rounds."""
    import bcrypt

    def verify(known: str, password: str) -> bool:
        try:
            return bcrypt.checkpw(password.encode(), known.encode())
        except ValueError:  # bcrypt takes 72 bytes; no account's password is longer
            return False

    def made(password: str) -> str:
        return bcrypt.hashpw(password.encode(), bcrypt.gensalt(rounds)).decode()

    return Hashing(made, verify)


def argon2_hashing() -> Hashing:
    """Return argon2id with the library's defaults, the second choice of RFC 9106."""
    import argon2

    hasher = argon2.PasswordHasher()

    def verify(known: str, password: str) -> bool:
        try:
            return hasher.verify(known, password)
        except argon2.exceptions.VerificationError:
            return False

    return Hashing(hasher.hash, verify)


def no_hashing() -> Hashing:
    """Return passwords as they are, compared in constant time: what a login costs without hash."""

    def verify(known: str, password: str) -> bool:
        return hmac.compare_digest(known.encode(), password.encode())

    return Hashing(str, verify)


def hashing(name: str, bcrypt_rounds: int) -> Hashing:
    """Return the hashing that the setting ``login_hash`` names."""
    if name == "bcrypt":
        return bcrypt_hashing(bcrypt_rounds)
    return argon2_hashing() if name == "argon2" else no_hashing()


def pool(size: int, hashing: Hashing) -> list[tuple[str, str]]:
    """Return name and password hash of every account."""
    made = hashing.hash(PASSWORD)
    return [(f"user{number}", made) for number in range(size)]


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
            raise Refused("wrong_token", "log in, and connect with the token that you get")
        return user

    def clear(self) -> None:
        """Forget all tokens."""
        self._users.clear()


def _digest_of(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
