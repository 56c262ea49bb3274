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

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from perflab.durable import explained, replace_file
from perflab.errors import PerflabError
from perflab.figures.canvas import LabFigure
from perflab.figures.inscribed import PDF_ORIGIN
from perflab.figures.inscribed import ProvenanceError as ProvenanceError
from perflab.figures.inscribed import provenance as provenance
from perflab.figures.origin import perflab_version
from perflab.figures.page import Page, page_of
from perflab.figures.stamp import stamped, table_digest
from perflab.figures.tables import read_csv, to_csv
from perflab.figures.theme import INK, PALETTE, applied
from perflab.figures.view import View, draw_table
from perflab.recordings import Run

COLORS = 256
DOTS_PER_INCH = 200
BACKGROUND = "white"
ELSEWHERE = "point PERFLAB_FIGURES at another folder"
FORMATS = ("svg", "png")


class FigureNotSaved(PerflabError):
    """The folder of figures cannot be written, or is full."""


def save_view(
    view: View,
    run: Run,
    directory: Path,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Write the table of a view as ``<name>.csv``, read it back, and save what is drawn from it.

    Parameters
    ----------
    directory : Path
        Made when missing.
    formats : sequence of str
        Of "svg", "png" and "pdf", which is not promised to be byte-identical across matplotlib's
        versions.

    Returns
    -------
    list of Path
        The pictures, then the table.
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


def save_drawing(
    drawing: LabFigure,
    name: str,
    page: Page,
    directory: Path,
    formats: Sequence[str] = FORMATS,
    *,
    table: bytes | None = None,
) -> list[Path]:
    """Write what was drawn on ``page`` with its origin inside; ``name`` has no suffix.

    ``table`` is the file that it was drawn from, where it is to lie beside it.
    """
    paths = []
    for file, content in _files(drawing, name, page, formats, table):
        paths.append(directory / file)
        write_whole(paths[-1], content)
    return paths


def _files(
    drawing: LabFigure,
    name: str,
    page: Page,
    formats: Sequence[str],
    table: bytes | None,
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
    written = {"Title": named["Title"], "Software": named["Creator"], "Description": text}
    return _in_few_colors(_painted(figure, DOTS_PER_INCH).convert("RGB"), written)


def _pdf(figure: LabFigure, named: dict[str, str], text: str) -> bytes:
    content = _rendered(figure, "pdf", {**named, "Subject": text, "CreationDate": None})
    return content + PDF_ORIGIN + text.encode() + b"\n"


Renderer = Callable[[LabFigure, dict[str, str], str], bytes]
_RENDERERS: dict[str, Renderer] = {"svg": _svg, "png": _png, "pdf": _pdf}


def _rendered(
    figure: Figure, kind: str, metadata: dict[str, str | None] | None, dpi: float = DOTS_PER_INCH
) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, format=kind, dpi=dpi, metadata=metadata, bbox_inches=None)
    return target.getvalue()


def _painted(figure: Figure, dpi: float) -> Image.Image:
    """Return a figure's pixels at the resolution of print."""
    pixels = _rendered(figure, "rgba", None, dpi)
    width = int(figure.get_figwidth() * dpi)
    return Image.frombytes("RGBA", (width, len(pixels) // (4 * width)), pixels)


def _as_png(picture: Image.Image, metadata: Mapping[str, str]) -> bytes:
    info = PngInfo()
    for key, value in metadata.items():
        info.add_text(key, value)
    target = io.BytesIO()
    picture.save(target, "png", pnginfo=info, dpi=(DOTS_PER_INCH,) * 2)
    return target.getvalue()


def _in_few_colors(picture: Image.Image, metadata: Mapping[str, str]) -> bytes:
    """Return a PNG with a palette, a third of the bytes; the treatments' colours stay exact."""
    few = picture.quantize(COLORS, dither=Image.Dither.NONE)
    few.putpalette(_kept_exact(picture, np.asarray(few), few.getpalette() or []))
    return _as_png(few, metadata)


def _kept_exact(picture: Image.Image, places: np.ndarray, palette: Sequence[int]) -> list[int]:
    """Return ``palette`` with the figures' own colours where their pixels were put, unblended."""
    exact = np.array(palette).reshape(-1, 3)
    # One number per pixel: comparing three takes five times as long.
    pixels = np.asarray(picture.convert("RGBA")).view(np.uint32)[..., 0]
    for name in (*PALETTE, INK, BACKGROUND):
        color = np.round(255 * np.array(to_rgb(name)))
        here = places[pixels == np.append(color, 255).astype(np.uint8).view(np.uint32)]
        if here.size:
            exact[np.bincount(here).argmax()] = color
    return [int(part) for part in exact.ravel()]


def write_whole(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` so that a reader sees the old file or the new, never a part.

    Raises
    ------
    FigureNotSaved
        The file cannot be written; what was there is still there.
    """
    with explained(path, "the run is kept", ELSEWHERE, FigureNotSaved):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
