"""Figures as files that say where they come from and are rebuilt byte for byte.

Same record, same bytes: no dates, identifiers salted with run and name, glyphs as paths. Files
appear whole or not at all (temporary file, fsync, rename). Each ends in a digest of itself and of
the table that it was drawn from (:mod:`perflab.figures.export`).

A digest at the end of a figure's file, so that one changed byte is found.

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
import io
import json
import re
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from perflab.errors import PerflabError
from perflab.figures.canvas import LabFigure
from perflab.figures.origin import Page, page_of, perflab_version
from perflab.figures.theme import applied
from perflab.figures.view import View, draw_table, read_csv, to_csv
from perflab.host.files import explained, replace_file
from perflab.recordings import Run

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


DOTS_PER_INCH, COLORS = 200, 256
ELSEWHERE = "point PERFLAB_FIGURES at another folder"
FORMATS = ("svg", "png")
DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"
PDF_ORIGIN = b"%perflab origin "


class FigureNotSaved(PerflabError):
    """The folder of figures cannot be written, or is full."""


class ProvenanceError(PerflabError):
    """A figure file says nothing about its origin, or cannot be read."""


def save_view(
    view: View,
    run: Run,
    directory: Path,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Write the table of a view as ``<name>.csv``, read it back, and save what is drawn from it.

    ``formats`` are of "svg", "png" and "pdf". Returns the pictures' paths, then the table's; the
    ``directory`` is made when missing.
    """
    files = {directory / name: content for name, content in rendered(view, run, formats)}
    for path, content in sorted(files.items(), key=lambda item: item[0].suffix != ".csv"):
        write_whole(path, content)
    return list(files)


def rendered(view: View, run: Run, formats: Sequence[str] = FORMATS) -> list[tuple[str, bytes]]:
    """Return name and content of each file that :func:`save_view` writes, the table last."""
    page, table = page_of(run), to_csv(view.shown(run)).encode()
    drawing = draw_table(view, read_csv(table.decode()), page)
    pictures = _files(drawing, view.name, page, formats, table)
    return [*pictures, (f"{view.name}.csv", table)]


def _files(
    drawing: LabFigure, name: str, page: Page, formats: Sequence[str], table: bytes
) -> list[tuple[str, bytes]]:
    origin = {**page.origin, "figure": name}
    digest = table_digest(table)
    named = {"Title": f"{page.title}: {name}", "Creator": f"perflab {perflab_version()}"}
    text = json.dumps(origin, sort_keys=True, default=str)
    # Identifiers in an SVG are salted with run and name.
    salt = {"svg.hashsalt": f"{page.origin['runs'][0]}/{name}"}
    with applied(**salt):
        contents = [_RENDERERS[suffix](drawing, named, text) for suffix in formats]
    return [
        (f"{name}.{suffix}", stamped(content, suffix, digest))
        for content, suffix in zip(contents, formats, strict=True)
    ]


def _svg(figure: LabFigure, named: dict[str, str], text: str) -> bytes:
    return _rendered(figure, "svg", {**named, "Description": text, "Date": None})


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


def _pdf(figure: LabFigure, named: dict[str, str], text: str) -> bytes:
    content = _rendered(figure, "pdf", {**named, "Subject": text, "CreationDate": None})
    return content + PDF_ORIGIN + text.encode() + b"\n"


Renderer = Callable[[LabFigure, dict[str, str], str], bytes]
_RENDERERS: dict[str, Renderer] = {"svg": _svg, "png": _png, "pdf": _pdf}


def _rendered(figure: Figure, kind: str, metadata: Mapping[str, str | None]) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, format=kind, dpi=DOTS_PER_INCH, metadata=dict(metadata))
    return target.getvalue()


def write_whole(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path``: a reader sees the old file or the new, also where this fails."""
    with explained(path, "the run is kept", ELSEWHERE, FigureNotSaved):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)


def provenance(path: Path) -> dict[str, Any]:
    """Read back what a saved SVG, PNG or PDF says about its origin.

    Raises
    ------
    ProvenanceError
        The file is none of them, cannot be read, or carries no provenance.
    """
    readers: dict[str, Callable[[Path], str | None]] = {
        ".svg": _from_svg, ".png": _from_png, ".pdf": _from_pdf,
    }  # fmt: skip
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ProvenanceError(f"{path}: provenance is read from .svg, .png and .pdf files")
    try:
        text = reader(path)
        found = json.loads(text) if text else None
    except (OSError, ValueError, SyntaxError) as error:
        raise ProvenanceError(f"{path}: cannot be read as a figure of perflab: {error}") from error
    if not isinstance(found, dict) or "runs" not in found:
        raise ProvenanceError(f"{path}: says nothing about its origin; was it saved by perflab?")
    return found


def _from_svg(path: Path) -> str | None:
    element = next(ElementTree.parse(path).iter(DESCRIPTION), None)
    return None if element is None else element.text


def _from_png(path: Path) -> str | None:
    with Image.open(path) as image:
        image.load()
        return image.info.get("Description")


def _from_pdf(path: Path) -> str | None:
    # Its dictionary has the same text, in an encoding of its own.
    lines = (line for line in path.read_bytes().splitlines() if line.startswith(PDF_ORIGIN))
    last = next(reversed([*lines]), None)
    return None if last is None else last[len(PDF_ORIGIN) :].decode()
