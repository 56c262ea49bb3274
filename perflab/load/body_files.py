"""Bodies that stand in a file, ``@FILE``: text, in which placeholders are filled, or any bytes.

Text comes in where parameters do, so that its credentials are found. A file that is no text in
UTF-8 stands there by its path.
"""

from __future__ import annotations

from pathlib import Path

from perflab.errors import cause

MOST_BYTES = 16 * 1024 * 1024
SIGN = "@"


def with_text(body: str) -> str:
    """Return a body; for a file its text, or its whole path if it is no text.

    Text that begins like a file's name is sent as bytes. Raises ValueError for a file that cannot
    be read, or is too long.
    """
    if not body.startswith(SIGN):
        return body
    path = Path(body[1:]).expanduser().resolve()
    try:
        text = _read(path).decode()
    except UnicodeDecodeError:
        text = SIGN
    return f"{SIGN}{path}" if text.startswith(SIGN) else text


def content_of(body: str) -> str | bytes:
    """Return a body as it is sent; raises as :func:`with_text` does."""
    return _read(Path(body[1:])) if body.startswith(SIGN) else body


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"body @{path}: {cause(error)}") from None
    if len(content) > MOST_BYTES:
        size = f"{len(content):,} bytes; a body may have {MOST_BYTES >> 20} MiB"
        raise ValueError(f"body @{path} has {size}")
    return content
