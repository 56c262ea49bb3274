"""Sections as Word and PDF, by pandoc and typst: an extra, as most users need neither.

PDF goes from pandoc's Typst to the typst compiler: both are wheels that hold all they need, fonts
too, so that no TeX and no package of the system is asked for.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from perflab.errors import ExportRefused

# Text only: no element of HTML, nothing that is fetched.
READER = "gfm-raw_html+attributes"
# Room for tables of many columns, and for figures as they were drawn.
TYPST = """\
#set page(paper: "a4", margin: (x: 1.8cm, y: 2cm), numbering: "1")
#set text(font: "Libertinus Serif", size: 10pt)
#set par(justify: false)
#set table(inset: 4pt, stroke: (x: none, y: 0.4pt + luma(180)))
#show table: set text(size: 8pt)
#show table: set align(left)
#show table: set par(leading: 0.45em)
#show figure: set block(breakable: true)
#show heading: set block(above: 1.4em, below: 0.7em)
#show raw.where(block: true): set text(size: 7.5pt)
#show raw.where(block: true): it => block(fill: luma(245), inset: 6pt, width: 100%, it)
#show quote.where(block: true): it => block(
  fill: luma(240), inset: 8pt, width: 100%, stroke: (left: 3pt + rgb("#cc6600")), it.body)
#let horizontalrule = line(length: 100%)
"""
# A picture as pandoc writes it where nothing says how wide it is.
IMAGE = re.compile(r"(?<=image\()(\"(?:[^\"\\]|\\.)*\")(?=\))")
# Of a page's text, inches; what is below a picture is left for its caption.
WIDEST_IN, TALLEST_IN = 6.0, 7.6
# Pictures are as wide as a page by themselves; of one that would be too tall, how wide it shall be.
NARROWED = """\
local widths = {%s}
function Image(image)
  image.attributes.width = widths[image.src]
  return image
end
"""
SIZE_OF_SVG = re.compile(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def check_installed(formats: list[str]) -> None:
    """Refuse formats whose programs are not installed.

    Raises
    ------
    ExportRefused
        Names the extra that brings them.
    """
    for wanted in formats:
        for name in ("pypandoc", "typst") if wanted == "pdf" else ("pypandoc",):
            try:
                __import__(name)
            except ImportError:
                raise ExportRefused(
                    f"--format {wanted} needs {name}, which is not installed: "
                    "pip install 'perflab[documents]'"
                ) from None


def docx(text: str, folder: Path) -> bytes:
    """Return sections as a Word document; links to pictures are relative to ``folder``."""
    target = folder / "document.docx"
    _convert(text, "docx", folder, target, options=_narrowed(folder))
    return target.read_bytes()


def pdf(text: str, folder: Path, title: str) -> bytes:
    """Return sections as PDF; links to pictures are relative to ``folder``.

    Raises
    ------
    ExportRefused
        The compiler does not take what it is given; the message is its own.
    """
    import typst

    written = _convert(text, "typst", folder, options=_narrowed(folder))
    body = IMAGE.sub(r"\1, width: 100%", written)
    source = folder / "document.typ"
    named = title.replace("\\", "\\\\").replace('"', '\\"')
    source.write_text(f'#set document(title: "{named}", date: none)\n{TYPST}\n{body}')
    try:
        # No date: what is the same shall look the same.
        made = typst.compile(str(source), root=str(folder), ignore_system_fonts=True, timestamp=0)
    except typst.TypstError as error:
        raise ExportRefused(f"the PDF cannot be set: {error}") from error
    if not isinstance(made, bytes):
        raise ExportRefused("the PDF cannot be set: typst gave no document")
    return made


def _narrowed(folder: Path) -> list[str]:
    """Return the option by which pictures that are too tall for a page become narrower."""
    widths = []
    for path in sorted(each for each in folder.rglob("*") if each.suffix in (".svg", ".png")):
        width, height = _size(path)
        if height / width > TALLEST_IN / WIDEST_IN:
            name = path.relative_to(folder).as_posix()
            widths.append(f"[{json.dumps(name)}] = '{TALLEST_IN * width / height:.2f}in'")
    script = folder / "narrowed.lua"
    script.write_text(NARROWED % ", ".join(widths))
    return ["--lua-filter", str(script)]


def _size(path: Path) -> tuple[float, float]:
    """Return width and height of a picture, in units of its own."""
    if path.suffix == ".svg":
        found = SIZE_OF_SVG.search(path.read_bytes())
        return (float(found[1]), float(found[2])) if found else (1.0, 1.0)
    with Image.open(path) as picture:
        return float(picture.width), float(picture.height)


def _convert(
    text: str, to: str, folder: Path, target: Path | None = None, options: Sequence[str] = ()
) -> str:
    import pypandoc

    words = [pypandoc.get_pandoc_path(), "--from", READER, "--to", to, "--wrap=preserve", *options]
    # What is shown is there: pandoc shall look nowhere else, and fetch nothing.
    words += ["--sandbox"] if target is None else ["--resource-path", str(folder)]
    words += [] if target is None else ["--output", str(target)]
    # No date: what is the same shall look the same.
    told = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    made = subprocess.run(words, input=text.encode(), env=told, capture_output=True, check=False)
    if made.returncode:
        raise ExportRefused(f"pandoc refused the section: {made.stderr.decode(errors='replace')}")
    return made.stdout.decode()
