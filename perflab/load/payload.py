"""The body of a request, as data: text, bytes, or a file that is named and not kept."""

from __future__ import annotations

import base64
import hashlib
import os
import zlib
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from perflab.errors import LoadError

PIECE_BYTES = 1 << 20


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BytesBody(_Model):
    """A body of any bytes; ``base64`` is how JSON has it."""

    base64: str

    @field_validator("base64")
    @classmethod
    def _is_base64(cls, text: str) -> str:
        try:
            base64.b64decode(text, validate=True)
        except ValueError as error:
            raise ValueError(f"the body is not base64: {error}") from None
        return text

    @property
    def content(self) -> bytes:
        """Return the bytes."""
        return base64.b64decode(self.base64)


class FileBody(_Model):
    """A body that is a file's content, sent piece by piece however large it is.

    Length and checksum are taken when the plan is made, unless they are given: a file that was
    changed since then is refused.

    Attributes
    ----------
    file : str
        Its path; a relative one is resolved.
    size_bytes : int
        Its length.
    sha256 : str
        Its checksum.
    """

    file: str
    size_bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    @model_validator(mode="before")
    @classmethod
    def _measured(cls, given: Any) -> Any:
        if not isinstance(given, dict) or set(given) != {"file"}:
            return given
        path = Path(given["file"]).resolve()
        try:
            size, checksum = measured(path)
        except OSError as error:
            raise ValueError(f"the body's file {path}: {error.strerror or error}") from None
        return {"file": str(path), "size_bytes": size, "sha256": checksum}

    @classmethod
    def of(cls, path: Path | str) -> Self:
        """Return the body that a file is now.

        Raises
        ------
        ValueError
            It cannot be read, or is no plain file.
        """
        return cls.model_validate({"file": str(path)})

    def check(self) -> None:
        """Refuse a file that is not what it was when the plan was made.

        Raises
        ------
        LoadError
            It was changed, or cannot be read.
        """
        try:
            found = measured(Path(self.file))
        except OSError as error:
            raise LoadError(f"the body's file {self.file}: {error.strerror or error}") from None
        if found != (self.size_bytes, self.sha256):
            raise LoadError(
                f"the body's file {self.file} was changed since the load was planned: it had "
                f"{self.size_bytes} bytes and SHA-256 {self.sha256[:12]}..., now {found[0]} and "
                f"{found[1][:12]}...; restore it, or plan the load anew"
            )


def checksum(path: Path) -> tuple[int, int]:
    """Return a file's length and CRC-32, read piece by piece.

    Raises
    ------
    OSError
        It cannot be read.
    """
    found = 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(PIECE_BYTES):
            found = zlib.crc32(piece, found)
        return file.tell(), found


def measured(path: Path) -> tuple[int, str]:
    """Return a file's length and SHA-256, read piece by piece.

    Raises
    ------
    OSError
        It cannot be read, or is no plain file.
    """
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no plain file")
    found = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(PIECE_BYTES):
            found.update(piece)
        return file.tell(), found.hexdigest()


def _of_bytes(given: Any) -> Any:
    if isinstance(given, bytes | bytearray | memoryview):
        return BytesBody(base64=base64.b64encode(given).decode())
    return given


Payload = Annotated[str | BytesBody | FileBody, BeforeValidator(_of_bytes)]


def content_of(body: Payload) -> bytes:
    """Return a body's bytes; none of a file's."""
    if isinstance(body, str):
        return body.encode()
    return body.content if isinstance(body, BytesBody) else b""


def length_of(body: Payload) -> int:
    """Return a body's length in bytes."""
    return body.size_bytes if isinstance(body, FileBody) else len(content_of(body))


def usual_type(body: Payload) -> str:
    """Return the media type of a body for which the request names none."""
    return "application/json" if isinstance(body, str) else "application/octet-stream"


class OpenFiles:
    """The files that a client sends bodies from, each opened once."""

    def __init__(self) -> None:
        self._descriptors: dict[FileBody, int] = {}

    def descriptor(self, body: FileBody) -> int:
        """Return the descriptor to read a body from, by place.

        Raises
        ------
        OSError
            It cannot be opened, or has another length than was planned.
        """
        if body not in self._descriptors:
            opened = os.open(body.file, os.O_RDONLY | os.O_CLOEXEC)
            size = os.fstat(opened).st_size
            if size != body.size_bytes:
                os.close(opened)
                raise OSError(f"{body.file} has {size} bytes, {body.size_bytes} were planned")
            self._descriptors[body] = opened
        return self._descriptors[body]

    def close(self) -> None:
        """Close them all."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()
