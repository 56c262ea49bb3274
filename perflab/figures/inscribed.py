"""What a saved figure says about its origin, read back from its file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from PIL import Image

from perflab.errors import PerflabError

DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"
PDF_ORIGIN = b"%perflab origin "


class ProvenanceError(PerflabError):
    """A figure file says nothing about its origin, or cannot be read."""


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
