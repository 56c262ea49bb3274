"""One request as data, and what its answer must be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from perflab.load.frozen import FrozenModel
from perflab.load.payload import Payload, checksum
from perflab.load.streamed import Format, Streaming, check_marker

TOKEN = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
NO_CONTROLS = r"^[^\x00-\x08\x0a-\x1f\x7f]*$"
HeaderName = Annotated[str, Field(pattern=TOKEN)]
HeaderValue = Annotated[str, Field(pattern=NO_CONTROLS)]


class Request(FrozenModel):
    """One request, prepared before the start, and what its answer must be.

    ``node`` names the node of the stack that answers; the lab fills in its address. With
    ``data``, every row fills the ``$name`` placeholders of path, header values and body; rows are
    used in turn. ``body`` is text, bytes, or a file (see :mod:`perflab.load.payload`); only text is
    filled. ``expect_body`` must occur in the body of every successful response, ``expect_bytes`` is
    its length; ``expect_crc32`` and ``expect_sha256`` are checksums of the whole body, computed as
    it is read. -1 or nothing leaves them open; ``expect_from`` names a file whose length and CRC-32
    they are, taken when the plan is made. With ``progress_points`` at most so many instants are
    recorded at which the body had come so far (the ``progress`` table). ``redirects`` is how many
    redirects are followed (0: none, a 3xx is an answer like others).

    ``stream`` says that the answer is a stream, of server-sent events (``sse``) or of lines of JSON
    (``ndjson``): when each chunk came is recorded (the ``chunks`` table), and there must be at
    least ``min_chunks`` of them. ``end_marker``, where given, must be the last event: all of its
    data (``[DONE]``), or members of the object in the last line (``"done":true``). It is no chunk.
    """

    node: str = ""
    method: Annotated[str, Field(pattern=TOKEN)] = "GET"
    path: Annotated[str, Field(pattern=r"^/[\x21-\x7e]*$")] = "/"
    headers: Mapping[HeaderName, HeaderValue] = Field(default_factory=dict)
    body: Payload = ""
    data: tuple[Mapping[str, Any], ...] = ()
    expect_status: int = Field(default=200, ge=0, le=999)
    expect_body: str = ""
    expect_bytes: int = Field(default=-1, ge=-1)
    expect_crc32: int = Field(default=-1, ge=-1, le=0xFFFFFFFF)
    expect_sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    redirects: int = Field(default=0, ge=0, le=20)
    progress_points: int = Field(default=0, ge=0, le=10_000)
    stream: Format | None = None
    min_chunks: int = Field(default=1, ge=1, le=1_000_000)
    end_marker: str = Field(default="", max_length=10_000)

    @model_validator(mode="before")
    @classmethod
    def _expects_a_file(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "expect_from" not in given:
            return given
        words = dict(given)
        file = words.pop("expect_from")
        twice = [name for name in ("expect_bytes", "expect_crc32") if name in words]
        if twice:
            raise ValueError(f"expect_from goes without {' and '.join(twice)}: they are the file's")
        try:
            words["expect_bytes"], words["expect_crc32"] = checksum(Path(file))
        except (OSError, TypeError) as error:
            raise ValueError(f"expect_from {file}: {error}") from None
        return words

    @field_validator("progress_points")
    @classmethod
    def _has_two_ends(cls, points: int) -> int:
        if points == 1:
            raise ValueError("give 2 points at least, for the first byte and the last, or 0")
        return points

    @property
    def streaming(self) -> Streaming | None:
        """Return what is expected of a streamed answer; None where it is to be none."""
        if self.stream is None:
            return None
        return Streaming(self.stream, self.min_chunks, self.end_marker)

    @model_validator(mode="after")
    def _can_be_streamed(self) -> Self:
        if self.stream is None:
            if self.min_chunks != 1 or self.end_marker:
                raise ValueError("min_chunks and end_marker need stream='sse' or stream='ndjson'")
            return self
        if self.method == "HEAD":
            raise ValueError("the answer to HEAD has no body that could be a stream")
        if self.redirects:
            raise ValueError(
                "a stream goes without redirects: name the address that streams (redirects=0)"
            )
        check_marker(self.stream, self.end_marker)
        return self

    @model_validator(mode="after")
    def _fills_text(self) -> Self:
        if self.data and not isinstance(self.body, str):
            raise ValueError("placeholders are filled in text: bytes and files go without data")
        return self
