"""The pool of accounts, and passwords that are really verified.

All accounts have one password and so one hash: a pool of 500 would otherwise take minutes to
prepare. A login costs the same, because verifying depends on the hash alone.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass

PASSWORD = "correct horse"


@dataclass(frozen=True)
class Hashing:
    """How passwords are hashed: ``verify(hash, password)``."""

    hash: Callable[[str], str]
    verify: Callable[[str, str], bool]
    facts: dict[str, object]


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

    return Hashing(made, verify, {"rounds": rounds})


def argon2_hashing() -> Hashing:
    """Return argon2id with the library's defaults, the second choice of RFC 9106."""
    import argon2

    hasher = argon2.PasswordHasher()

    def verify(known: str, password: str) -> bool:
        try:
            return hasher.verify(known, password)
        except argon2.exceptions.VerificationError:
            return False

    facts: dict[str, object] = {
        "time_cost": hasher.time_cost,
        "memory_kib": hasher.memory_cost,
        "parallelism": hasher.parallelism,
    }
    return Hashing(hasher.hash, verify, facts)


def no_hashing() -> Hashing:
    """Return passwords as they are, compared in constant time: what a login costs without hash."""

    def verify(known: str, password: str) -> bool:
        return hmac.compare_digest(known.encode(), password.encode())

    return Hashing(str, verify, {})


def hashing(name: str, bcrypt_rounds: int) -> Hashing:
    """Return the hashing that the setting ``login_hash`` names."""
    if name == "bcrypt":
        return bcrypt_hashing(bcrypt_rounds)
    return argon2_hashing() if name == "argon2" else no_hashing()


def user_name(number: int) -> str:
    """Return the name of an account of the pool."""
    return f"user{number}"


def user_number(name: str) -> int:
    """Return which account of the pool a name is."""
    return int(name.removeprefix("user"))


def pool(size: int, hashing: Hashing) -> list[tuple[str, str]]:
    """Return name and password hash of every account."""
    made = hashing.hash(PASSWORD)
    return [(user_name(number), made) for number in range(size)]
