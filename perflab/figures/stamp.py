"""A digest at the end of a figure's file, so that one changed byte is found.

It is no signature: whoever wants to can write another. It finds what was opened and saved again,
recoloured, cropped, or broken on its way, and a table that is no longer the one that was drawn.

==== ==================================================
SVG  a comment after the last element
PNG  a text chunk before the end
PDF  a comment after the end of the last cross-reference
==== ==================================================
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from dataclasses import dataclass

NO_TABLE = "none"
KEYWORD = b"perflab digest\0"
IEND = b"\0\0\0\0IEND\xaeB`\x82"
_TEXT = re.compile(rb"figure=([0-9a-f]{64}) table=([0-9a-f]{64}|none)")


@dataclass(frozen=True)
class Stamp:
    """What a file says of itself: ``table`` is the SHA-256 of the table that was drawn."""

    table: str
    whole: bool


def table_digest(table: bytes | None) -> str:
    """Return the SHA-256 of a table's file; "none" of a figure that has no table."""
    return NO_TABLE if table is None else hashlib.sha256(table).hexdigest()


def stamped(content: bytes, suffix: str, table: str) -> bytes:
    """Return a figure's file with a stamp, that of before replaced; see :func:`table_digest`."""
    plain = unstamped(content, suffix)
    digest = hashlib.sha256(plain + table.encode()).hexdigest()
    text = f"figure={digest} table={table}".encode()
    if suffix == "png":
        return plain[: -len(IEND)] + _chunk(text) + IEND
    before, after = _AROUND[suffix]
    return plain + before + text + after


def stamp_of(content: bytes, suffix: str) -> Stamp | None:
    """Return what a file's stamp says, and whether the file is the one that was stamped."""
    plain = unstamped(content, suffix)
    if plain == content:
        return None
    found = _TEXT.search(content, len(plain) - (len(IEND) if suffix == "png" else 0))
    if found is None:
        return None
    table = found[2].decode()
    # Built anew and compared whole: a byte that changed in the stamp itself is found as well.
    return Stamp(table, stamped(plain, suffix, table) == content)


def unstamped(content: bytes, suffix: str) -> bytes:
    """Return a file without its stamp: itself where it has none."""
    if suffix == "png":
        return _without_chunk(content)
    before, _ = _AROUND[suffix]
    place = content.rfind(before)
    return content if place < 0 else content[:place]


_AROUND = {"svg": (b"<!-- perflab digest ", b" -->\n"), "pdf": (b"%perflab digest ", b"\n")}


def _chunk(text: bytes) -> bytes:
    body = b"tEXt" + KEYWORD + text
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


def _without_chunk(content: bytes) -> bytes:
    place = content.rfind(b"tEXt" + KEYWORD)
    return content if place < 4 else content[: place - 4] + IEND
