"""The bearer token: from a file that only its user can read, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from pathlib import Path

from registry.health.refusal import MissingToken, WrongToken

# Fewer characters could be guessed by trying.
SHORTEST = 16


class Secret:
    """The service's token, of which only a digest is kept."""

    def __init__(self, token: str) -> None:
        if len(token) < SHORTEST:
            raise ValueError(f"a token must have {SHORTEST} characters or more")
        self._digest = _digest_of(token)

    @classmethod
    def read(cls, path: Path) -> Secret:
        """Read the token from a file.

        Raises
        ------
        ValueError
            There is no readable token; the message names the file, not what is in it.
        """
        try:
            return cls(path.read_text().strip())
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ValueError(f"no token for the health side in {path}: {why}") from None

    def require(self, headers: Mapping[str, str]) -> None:
        """Let a request pass that shows the token.

        Raises
        ------
        MissingToken, WrongToken
            It shows none, or another.
        """
        kind, _, shown = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not shown.strip():
            raise MissingToken("send the service's token: 'Authorization: Bearer ...'")
        # Digests are equally long, so that the comparison tells nothing of the token's length.
        if not hmac.compare_digest(_digest_of(shown.strip()), self._digest):
            raise WrongToken("this is not the token of this service")


def _digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()
