"""One request as data: the expected answer, and how long its connection lives."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Base64Bytes, BeforeValidator, Field, field_validator, model_validator

from perflab.credentials import filled_in, names_in, reference
from perflab.errors import ParameterError
from perflab.load.clients.stream_formats import Format
from perflab.load.clients.streams import Streaming, check_marker
from perflab.parameters import FrozenModel

TOKEN = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
IN_PATH = r"[\x21-\x7e]*"
NO_CONTROLS = r"^[^\x00-\x08\x0a-\x1f\x7f]*$"
HeaderName = Annotated[str, Field(pattern=TOKEN)]
HeaderValue = Annotated[str, Field(pattern=NO_CONTROLS)]
Reuse = Literal["keep_alive", "per_request"]


ANY_STATUS, MOST_STATUS = 0, 999


def _statuses(given: Any) -> Any:
    """Return a status, or the several that a text or a list names (``201,409``)."""
    parts = given.split(",") if isinstance(given, str) else given
    parts = parts if isinstance(parts, list | tuple) else (parts,)
    texts = [str(part).strip() for part in parts]
    if not texts or not all(text.isdecimal() and int(text) <= MOST_STATUS for text in texts):
        raise ValueError("a status is a number, like 200; several are 201,409")
    statuses = tuple(map(int, texts))
    return statuses if len(statuses) > 1 else statuses[0]


# One status, or several.
Statuses = Annotated[int | tuple[int, ...], BeforeValidator(_statuses)]


class BytesBody(FrozenModel):
    """A body of any bytes, which JSON has as base64."""

    base64: Base64Bytes


def _of_bytes(body: Any) -> Any:
    is_bytes = isinstance(body, bytes | bytearray | memoryview)
    return BytesBody(base64=base64.b64encode(body)) if is_bytes else body


# A text, bytes, or several texts in turn.
Bodies = Annotated[
    str | BytesBody | Annotated[tuple[str, ...], Field(min_length=1)], BeforeValidator(_of_bytes)
]


class Connections(FrozenModel):
    """How many connections there may be, and whether a connection is used again.

    A word for ``reuse``, or a whole number for the cap, may stand for the object. With
    ``per_request`` each request is sent with ``Connection: close``, and its connection closed.
    ``most`` caps the connections open at a time, over all workers (0: one per user in a closed
    loop, else 2,000). A request that finds none free waits, as part of its response time.
    """

    reuse: Reuse = "keep_alive"
    most: int = Field(default=0, ge=0, le=60_000)

    @model_validator(mode="before")
    @classmethod
    def _from_shorthand(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"reuse": value}
        return {"most": value} if isinstance(value, int) else value

    @property
    def closing(self) -> bool:
        """Whether a connection is closed after its request."""
        return self.reuse == "per_request"


class Request(FrozenModel):
    """One request, prepared before the start, and its expected answer.

    ``node`` names the node of the stack that answers; the lab fills in its address. ``body`` is
    text, bytes, or several texts: then each request has the next, in turn. ``expect_status`` is one
    status or several (``201,409``), 0 means any. ``expect_body`` must
    occur in the body of every successful response; ``expect_bytes`` is the length of the body,
    ``expect_crc32`` its checksum; -1 or nothing means any. All three are of the body as unpacked by
    its Content-Encoding. With ``progress_points`` at most so many
    points of the body's arrival are recorded (the ``progress`` table). ``redirects`` is the number
    of redirects that a GET follows (0: a 3xx is an answer like others).

    ``stream`` says that the answer is a stream, of server-sent events (``sse``) or of lines of JSON
    (``ndjson``): the instant of each chunk is recorded (the ``chunks`` table), and there must be at
    least ``min_chunks`` of them. ``end_marker``, where given, must be the last event: all of its
    data (``[DONE]``), or members of the object in the last line (``"done":true``). It is no chunk.
    """

    node: str = ""
    method: Annotated[str, Field(pattern=TOKEN)] = "GET"
    path: Annotated[str, Field(pattern=f"^/{IN_PATH}$")] = "/"
    headers: Mapping[HeaderName, HeaderValue] = Field(default_factory=dict)
    body: Bodies = ""
    expect_status: Statuses = 200
    expect_body: str = ""
    expect_bytes: int = Field(default=-1, ge=-1)
    expect_crc32: int = Field(default=-1, ge=-1, le=0xFFFFFFFF)
    redirects: int = Field(default=0, ge=0, le=20)
    progress_points: int = Field(default=0, ge=0, le=10_000)
    stream: Format | None = None
    min_chunks: int = Field(default=1, ge=1, le=1_000_000)
    end_marker: str = Field(default="", max_length=10_000)

    @field_validator("method")
    @classmethod
    def _has_an_answer_with_a_body(cls, method: str) -> str:
        if method == "HEAD":
            raise ValueError(
                "HEAD cannot be sent as load, for its answers have no body: give another method"
            )
        return method

    @field_validator("progress_points")
    @classmethod
    def _has_two_ends(cls, points: int) -> int:
        if points == 1:
            raise ValueError(
                "progress_points must be 0, or at least 2: for the first byte and for the last"
            )
        return points

    def with_credentials(self) -> Self:
        """Return the request as it is sent, with the values of its references.

        Raises ParameterError for a value that a path cannot hold; it names its variable.
        """
        body = self.body
        if isinstance(body, str):
            body = filled_in(body)
        elif isinstance(body, tuple):
            body = tuple(map(filled_in, body))
        headers = {name: filled_in(value) for name, value in self.headers.items()}
        expected = filled_in(self.expect_body)
        path = filled_in(self.path)
        for name in names_in(self.path):
            if not re.fullmatch(IN_PATH, filled_in(reference(name))):
                text = f"the environment variable {name} holds a blank or a letter beyond ASCII"
                raise ParameterError("request", [f"{text}: percent-encode it for the path"])
        return self.model_copy(
            update={"path": path, "headers": headers, "body": body, "expect_body": expected}
        )

    @property
    def bodies(self) -> tuple[bytes, ...]:
        """Return the bodies that requests send in turn."""
        body = self.body
        if isinstance(body, BytesBody):
            return (body.base64,)
        return (body.encode(),) if isinstance(body, str) else tuple(map(str.encode, body))

    @property
    def statuses(self) -> frozenset[int]:
        """Return the statuses of a success; empty where any is one."""
        expected = self.expect_status
        some = (expected,) if isinstance(expected, int) else expected
        return frozenset(some) - {ANY_STATUS}

    def expects(self, status: int) -> bool:
        """Return whether a status is one of a success."""
        return status in self.statuses or not self.statuses

    @property
    def usual_type(self) -> str:
        """Return the media type of the body where the request names none."""
        is_bytes = isinstance(self.body, BytesBody)
        return "application/octet-stream" if is_bytes else "application/json"

    @property
    def is_judged(self) -> bool:
        """Whether every answer is held against what is expected of its body."""
        return (
            bool(self.expect_body or self.stream) or max(self.expect_crc32, self.expect_bytes) >= 0
        )

    @property
    def streaming(self) -> Streaming | None:
        """Return the expectations of a streamed answer; None without a stream."""
        if self.stream is None:
            return None
        return Streaming(self.stream, self.min_chunks, self.end_marker)

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.redirects and self.method != "GET":
            raise ValueError("only a GET follows redirects: leave redirects at 0 for other methods")
        if self.stream is None:
            if self.min_chunks != 1 or self.end_marker:
                raise ValueError("min_chunks and end_marker need stream='sse' or stream='ndjson'")
            return self
        if self.redirects:
            raise ValueError(
                "a stream follows no redirects: give the address that streams, and redirects=0"
            )
        check_marker(self.stream, self.end_marker)
        return self
