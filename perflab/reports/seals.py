"""Files that are written whole (Word, PDF) say of what they were made, and whether they still are.

The seal stands where readers of the format do not look: in the comment of a Word file, which is a
zip archive, and behind the end of a PDF. Whoever saves the file with another program loses it.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from dataclasses import dataclass

SEAL = re.compile(rb"perflab ([0-9a-f]{16}) ([0-9a-f]{16})")
PDF_BEGINS = b"%PDF"
BEFORE = b"\n%"
DIGITS = 16


@dataclass(frozen=True)
class Seal:
    """The digest of what a file was made of, and that of the file; True where it still holds."""

    source: str
    holds: bool


def sealed(content: bytes, source: str) -> bytes:
    """Return a PDF or Word file with its seal."""
    words = f"perflab {source} {_digest_of(content)}".encode()
    if content.startswith(PDF_BEGINS):
        return content + BEFORE + words
    target = io.BytesIO(content)
    with zipfile.ZipFile(target, "a") as archive:
        archive.comment = words
    return target.getvalue()


def seal_of(content: bytes) -> Seal | None:
    """Return the seal of a file; None where it has none: another program wrote it."""
    if content.startswith(PDF_BEGINS):
        content, _, words = content.rpartition(BEFORE)
    else:
        try:
            words = zipfile.ZipFile(io.BytesIO(content)).comment
        except (zipfile.BadZipFile, OSError):
            return None
    match = SEAL.fullmatch(words)
    if match is None:
        return None
    source, digest = (each.decode() for each in match.groups())
    return Seal(source, digest == _digest_of(content))


def digest_of(*parts: bytes) -> str:
    """Return the digest of parts, each told from the next."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()[:DIGITS]


def _digest_of(content: bytes) -> str:
    if content.startswith(PDF_BEGINS):
        return digest_of(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return digest_of(*(f"{each.filename} {each.CRC}".encode() for each in archive.infolist()))
