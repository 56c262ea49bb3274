"""Figures as files that say where they come from and are rebuilt byte for byte.

The same record gives the same bytes, on any machine: there are no dates, identifiers within an SVG
are numbered behind a hash of the figure's origin (matplotlib's own hash coordinates, whose last
bits differ between processors), and glyphs are paths. Files are written whole or not at all
(temporary file, fsync, rename).

Each file ends in a digest of itself and of the table that it was drawn from (in SVG and PDF a
comment, in PNG a text chunk), so that one changed byte is found. The digest is no signature:
anybody can write another. It finds a file that was edited, saved again or damaged, and a table that
is no longer the one that was drawn.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from perflab.analysis.evaluation import Finding
from perflab.errors import ExportRefused, PerflabError
from perflab.figures.canvas import LabFigure
from perflab.figures.origin import Page, page_of
from perflab.figures.theme import applied
from perflab.figures.view import View, draw_table, read_csv, to_csv
from perflab.host.files import explained, replace_file
from perflab.recordings import Run

# A document was drawn from no table.
NO_TABLE = hashlib.sha256(b"").hexdigest()
KEYWORD = b"perflab digest\0"
IEND = b"\0\0\0\0IEND\xaeB`\x82"
_TEXT = re.compile(rb"figure=([0-9a-f]{64}) table=([0-9a-f]{64})")
_COMMENT = (b"<!-- perflab digest ", b" -->\n")
_STAMP_ENDS = {"svg": _COMMENT, "html": _COMMENT, "pdf": (b"%perflab digest ", b"\n")}
DOTS_PER_INCH, COLORS = 200, 256
ELSEWHERE = "point PERFLAB_FIGURES at another folder"
FORMATS = ("svg", "png")
DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"
PDF_ORIGIN = b"%perflab origin "
# An identifier that matplotlib hashes, where an SVG defines it and where it is used.
HASHED = re.compile(rb'(id="|="#|\(#)(\w*?[0-9a-f]{10})(?=["\)])')
HASH_DIGITS = 10


@dataclass(frozen=True)
class Stamp:
    """The stamp of a file: the SHA-256 of its table, and whether the file is unchanged."""

    table: str
    whole: bool


def table_digest(table: bytes) -> str:
    """Return the SHA-256 of a table's file."""
    return hashlib.sha256(table).hexdigest()


def stamped(content: bytes, suffix: str, table: str) -> bytes:
    """Return a figure's file with a new stamp; ``table`` is of :func:`table_digest`."""
    plain = unstamped(content, suffix)
    digest = hashlib.sha256(plain + table.encode()).hexdigest()
    text = f"figure={digest} table={table}".encode()
    if suffix == "png":
        return plain[: -len(IEND)] + _chunk(text) + IEND
    before, after = _STAMP_ENDS[suffix]
    return plain + before + text + after


def stamp_of(content: bytes, suffix: str) -> Stamp | None:
    """Return the stamp of a file; None if it has none."""
    plain = unstamped(content, suffix)
    if plain == content:
        return None
    match = _TEXT.search(content, len(plain) - (len(IEND) if suffix == "png" else 0))
    if match is None:
        return None
    table = match[2].decode()
    # The whole file is compared, so that a changed byte in the stamp itself is found too.
    return Stamp(table, stamped(plain, suffix, table) == content)


def unstamped(content: bytes, suffix: str) -> bytes:
    """Return a file without its stamp, if it has one."""
    if suffix == "png":
        place = content.rfind(b"tEXt" + KEYWORD)
        return content if place < 4 else content[: place - 4] + IEND
    before, _ = _STAMP_ENDS[suffix]
    place = content.rfind(before)
    return content if place < 0 else content[:place]


def _chunk(text: bytes) -> bytes:
    body = b"tEXt" + KEYWORD + text
    return struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


class ProvenanceError(PerflabError):
    """A figure file has no origin, or cannot be read."""


def save_view(
    view: View,
    run: Run,
    directory: Path,
    formats: Sequence[str] = FORMATS,
    findings: Sequence[Finding] | None = None,
) -> list[Path]:
    """Save a view: its table as ``<name>.csv``, and the pictures that are drawn from that file.

    ``formats`` are among "svg", "png" and "pdf"; ``findings`` are those of the run, as for
    :meth:`View.shown`. Returns the paths of the pictures, then that of
    the table. A missing ``directory`` is created.
    """
    files = {directory / name: content for name, content in rendered(view, run, formats, findings)}
    for path, content in sorted(files.items(), key=lambda item: item[0].suffix != ".csv"):
        write_whole(path, content)
    return list(files)


def rendered(
    view: View,
    run: Run,
    formats: Sequence[str] = FORMATS,
    findings: Sequence[Finding] | None = None,
) -> list[tuple[str, bytes]]:
    """Return name and content of each file of :func:`save_view`; the table is last."""
    page, table = page_of(run), to_csv(view.shown(run, findings)).encode()
    drawing = draw_table(view, read_csv(table.decode()), page)
    pictures = _files(drawing, view.name, page, formats, table)
    return [*pictures, (f"{view.name}.csv", table)]


def _files(
    drawing: LabFigure, name: str, page: Page, formats: Sequence[str], table: bytes
) -> list[tuple[str, bytes]]:
    origin = {**page.origin, "figure": name}
    digest = table_digest(table)
    named = {"Title": f"{page.title}: {name}", "Creator": f"perflab {version('perflab')}"}
    text = json.dumps(origin, sort_keys=True, default=str)
    with applied():
        contents = [_content(drawing, suffix, named, text) for suffix in formats]
    return [
        (f"{name}.{suffix}", stamped(content, suffix, digest))
        for content, suffix in zip(contents, formats, strict=True)
    ]


def _content(figure: LabFigure, suffix: str, named: dict[str, str], text: str) -> bytes:
    """Return a figure as SVG, PNG or PDF, with its origin and without a date."""
    if suffix == "png":
        return _png(figure, named, text)
    if suffix == "svg":
        drawn = _rendered(figure, "svg", {**named, "Description": text, "Date": None})
        return _numbered(drawn, text)
    content = _rendered(figure, "pdf", {**named, "Subject": text, "CreationDate": None})
    return content + PDF_ORIGIN + text.encode() + b"\n"


def _numbered(svg: bytes, origin: str) -> bytes:
    """Return an SVG whose hashed identifiers are numbers behind a hash of its origin."""
    first = hashlib.sha256(origin.encode()).hexdigest()[:HASH_DIGITS]
    numbers: dict[bytes, int] = {}

    def numbered(found: re.Match[bytes]) -> bytes:
        number = numbers.setdefault(found[2], len(numbers))
        return found[1] + f"p{first}-{number}".encode()

    return HASHED.sub(numbered, svg)


def _png(figure: LabFigure, named: dict[str, str], text: str) -> bytes:
    """Return a PNG with a palette, which has a third of the bytes."""
    with Image.open(io.BytesIO(_rendered(figure, "png", {}))) as painted:
        picture = painted.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    info = PngInfo()
    written = {"Title": named["Title"], "Software": named["Creator"], "Description": text}
    for key, value in written.items():
        info.add_text(key, value)
    target = io.BytesIO()
    picture.save(target, "png", pnginfo=info, dpi=(DOTS_PER_INCH,) * 2)
    return target.getvalue()


def _rendered(figure: Figure, kind: str, metadata: Mapping[str, str | None]) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, format=kind, dpi=DOTS_PER_INCH, metadata=dict(metadata))
    return target.getvalue()


def write_whole(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path``: a reader sees the old file or the new, even if this fails."""
    with explained(path, "the run is kept", ELSEWHERE, ExportRefused):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)


def provenance(path: Path) -> dict[str, Any]:
    """Return the origin that a saved SVG, PNG or PDF holds.

    ProvenanceError where the file has another format, cannot be read, or has no origin.
    """
    try:
        text = _origin_text(path)
        origin = json.loads(text) if text else None
    except (OSError, ValueError, SyntaxError) as error:
        raise ProvenanceError(f"{path}: cannot be read as a figure of perflab: {error}") from error
    if not isinstance(origin, dict) or "runs" not in origin:
        raise ProvenanceError(f"{path}: says nothing about its origin; was it saved by perflab?")
    return origin


def _origin_text(path: Path) -> str | None:
    match path.suffix.lower():
        case ".svg":
            element = next(ElementTree.parse(path).iter(DESCRIPTION), None)
            return None if element is None else element.text
        case ".png":
            with Image.open(path) as image:
                image.load()
                return image.info.get("Description")
        case ".pdf":
            # The PDF's dictionary has the same text, but in another encoding.
            lines = [line for line in path.read_bytes().splitlines() if line.startswith(PDF_ORIGIN)]
            return lines[-1].removeprefix(PDF_ORIGIN).decode() if lines else None
    raise ProvenanceError(f"{path}: provenance is read from .svg, .png and .pdf files")
