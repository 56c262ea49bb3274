"""Figures as files that say where they come from and are rebuilt byte for byte.

Same record, same bytes: no dates, identifiers salted with run and name, glyphs as paths. Files
appear whole or not at all (temporary file, fsync, rename). Each ends in a digest of itself and of
the table that it was drawn from (:mod:`perflab.figures.stamp`).
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from perflab.durable import explained, replace_file
from perflab.errors import PerflabError
from perflab.figures.canvas import LabFigure
from perflab.figures.origin import perflab_version
from perflab.figures.page import Page, page_of
from perflab.figures.stamp import stamped, table_digest
from perflab.figures.tables import read_csv, to_csv
from perflab.figures.theme import applied
from perflab.figures.view import View, draw_table
from perflab.recordings import Run

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
