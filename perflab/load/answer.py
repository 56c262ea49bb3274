"""What a scripted user gets for a request, and what it raises when it cannot go on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from perflab.errors import ParameterError
from perflab.load.body import TOO_LARGE
from perflab.load.head import header
from perflab.load.outcome import CODES
from perflab.parameters import did_you_mean


@dataclass(frozen=True)
class Answer:
    """An answer to a user's request; ``error`` is its error class, empty when it is as expected.

    ``body`` is empty where it was not to be kept.
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

        Raises
        ------
        ValueError
            It is none, or was not to be kept.
        NotServed
            It was too large to be kept.
        """
        if self.error == "body_too_large":
            raise NotServed(self.error, TOO_LARGE)
        if not self.body:
            raise ValueError(
                "there is no body to read JSON from; with keep_body=False none is kept"
            )
        return json.loads(self.body)

    def header(self, name: str) -> str:
        """Return a header's first value, or an empty string."""
        return header(self.head, name)


class NotServed(Exception):
    """Raise it in a script that cannot go on because of what the server did.

    ``kind`` is the error class under which the step is recorded; one that there is not raises
    ParameterError. Whatever else a script raises is taken for a fault of its own (``script``).
    """

    def __init__(self, kind: str, reason: str) -> None:
        if kind not in CODES:
            told = f"'{kind}' is no error class{did_you_mean(kind, CODES)}; {reason}"
            raise ParameterError("NotServed", [told])
        super().__init__(reason)
        self.kind = kind
