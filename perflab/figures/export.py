"""Figures as files that say where they come from and are rebuilt byte for byte.

Same record, same bytes: no dates, identifiers salted with run and name, glyphs as paths. Files
appear whole or not at all (temporary file, fsync, rename).
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from perflab.durable import explained, replace_file
from perflab.errors import PerflabError
from perflab.figures.canvas import LabFigure
from perflab.figures.flame_graphs import FlameGraph
from perflab.figures.looks import PALETTE
from perflab.figures.origin import perflab_version
from perflab.figures.page import Page, page_of
from perflab.figures.tables import read_csv, to_csv
from perflab.figures.theme import INK, applied
from perflab.figures.view import Drawing, View, draw_table
from perflab.recordings import Run

PRINT_DPI = 200
COLORS = 256
ELSEWHERE = "point PERFLAB_FIGURES at another folder"
FORMATS = ("svg", "png")
DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"


class FigureNotSaved(PerflabError):
    """The folder of figures cannot be written, or is full."""


class ProvenanceError(PerflabError):
    """A figure file says nothing about its origin, or cannot be read."""


def save_view(
    view: View, run: Run, directory: Path, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Write the table of a view as ``<name>.csv``, read it back, and save what is drawn from it.

    Parameters
    ----------
    directory : Path
        Made when missing.
    formats : sequence of str
        Of "svg", "png" and "pdf", which is not promised to be byte-identical across matplotlib's
        versions. A flame graph is always an SVG.

    Returns
    -------
    list of Path
        The pictures, then the table.
    """
    page, path = page_of(run), directory / f"{view.name}.csv"
    write_whole(path, to_csv(view.table(run)).encode())
    drawing = draw_table(view, read_csv(path.read_text(encoding="utf-8")), page)
    return [*save_drawing(drawing, view.name, page, directory, formats), path]


def save_drawing(
    drawing: Drawing, name: str, page: Page, directory: Path, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Write what was drawn on ``page`` with its origin inside; ``name`` has no suffix."""
    origin = {**page.origin, "figure": name}
    if isinstance(drawing, FlameGraph):
        path = directory / f"{name}.svg"
        write_whole(path, drawing.svg(origin).encode())
        return [path]
    named = {"Title": f"{page.title}: {name}", "Creator": f"perflab {perflab_version()}"}
    text = json.dumps(origin, sort_keys=True, default=str)
    paths = [directory / f"{name}.{suffix}" for suffix in formats]
    # Identifiers in an SVG are salted with run and name.
    with applied(**{"svg.hashsalt": f"{page.origin['runs'][0]}/{name}"}):
        for path, suffix in zip(paths, formats, strict=True):
            write_whole(path, _RENDERERS[suffix](drawing, named, text))
    return paths


def _svg(figure: LabFigure, named: dict[str, str], text: str) -> bytes:
    return _rendered(figure, "svg", {**named, "Description": text, "Date": None})


def _png(figure: LabFigure, named: dict[str, str], text: str) -> bytes:
    written = {"Title": named["Title"], "Software": named["Creator"], "Description": text}
    return _in_few_colors(_painted(figure), written)


def _pdf(figure: LabFigure, named: dict[str, str], text: str) -> bytes:
    return _rendered(figure, "pdf", {**named, "Subject": text, "CreationDate": None})


_RENDERERS: dict[str, Callable[[LabFigure, dict[str, str], str], bytes]] = {
    "svg": _svg, "png": _png, "pdf": _pdf,
}  # fmt: skip


def _rendered(figure: Figure, kind: str, metadata: dict[str, str | None] | None) -> bytes:
    target = io.BytesIO()
    figure.savefig(target, format=kind, dpi=PRINT_DPI, metadata=metadata, bbox_inches=None)
    return target.getvalue()


def _painted(figure: Figure) -> Image.Image:
    """Return a figure's pixels at the resolution of print."""
    pixels = _rendered(figure, "rgba", None)
    width = int(figure.get_figwidth() * PRINT_DPI)
    return Image.frombytes("RGBA", (width, len(pixels) // (4 * width)), pixels).convert("RGB")


def _in_few_colors(picture: Image.Image, metadata: Mapping[str, str]) -> bytes:
    """Return a PNG with a palette, a third of the bytes; the treatments' colours stay exact."""
    info = PngInfo()
    for key, value in metadata.items():
        info.add_text(key, value)
    few = picture.quantize(COLORS, dither=Image.Dither.NONE)
    few.putpalette(_kept_exact(picture, np.asarray(few), few.getpalette() or []))
    target = io.BytesIO()
    few.save(target, "png", pnginfo=info, dpi=(PRINT_DPI, PRINT_DPI))
    return target.getvalue()


def _kept_exact(picture: Image.Image, places: np.ndarray, palette: Sequence[int]) -> list[int]:
    """Return ``palette`` with the figures' own colours where their pixels were put, unblended."""
    exact = np.array(palette).reshape(-1, 3)
    # One number per pixel: comparing three takes five times as long.
    pixels = np.asarray(picture.convert("RGBA")).view(np.uint32)[..., 0]
    for name in (*PALETTE, INK, "white"):
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


def provenance(path: Path) -> dict[str, Any]:
    """Read back what a saved SVG or PNG says about its origin.

    Raises
    ------
    ProvenanceError
        The file is no SVG or PNG, cannot be read, or carries no provenance.
    """
    readers: dict[str, Callable[[Path], str | None]] = {".svg": _from_svg, ".png": _from_png}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ProvenanceError(f"{path}: provenance is read from .svg and .png files")
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
