"""Converts sections from Markdown to HTML, Word and PDF.

The HTML page holds its pictures and fetches nothing. Word and PDF need pandoc and typst, which are
an extra because most users need neither. Pandoc writes Typst and the typst compiler makes the PDF:
both are wheels that hold all they need, fonts too, so that neither TeX nor a system package is
required.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from PIL import Image

from perflab.errors import ExportRefused

# Pandoc reads no HTML elements, so the document fetches nothing.
# It reads neither formulas nor struck-out words, which names and paths from outside may look like.
READER = "gfm-raw_html-emoji-strikeout-tex_math_dollars-tex_math_gfm+attributes"
# Leaves room for tables of many columns, and for figures in their own size.
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
# The largest picture of a page, in inches; it leaves room for the caption below.
IMAGE = re.compile(r"!\[.*?\]\(<(.+?)>\)")
WIDEST_IN, TALLEST_IN = 6.0, 7.6
# The letters of a column's longest cell, for its share of a table's width.
FEWEST_LETTERS, MOST_LETTERS = 6, 40
SIZE_OF_SVG = re.compile(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"')
KINDS = {"svg": "image/svg+xml", "png": "image/png"}
# Figures are drawn for white paper: they keep a white ground on a dark page.
STYLE = """
:root{color-scheme:light dark;--line:#8886;--soft:#8881}
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem;
overflow-wrap:break-word}
h1,h2,h3{line-height:1.25;margin:2rem 0 .5rem}
h1{font-size:1.6rem}h2{font-size:1.25rem}h3{font-size:1.05rem}
img{display:block;max-width:100%;height:auto;background:#fff;margin:1.5rem auto .25rem;
border-radius:4px}
em{font-size:.9rem}
.table{overflow-x:auto;margin:1rem 0}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
th,td{border-bottom:1px solid var(--line);padding:.3rem .6rem;text-align:left;
vertical-align:top;overflow-wrap:normal;min-width:4.5rem}
td:first-child{min-width:8rem}
th{background:var(--soft)}
blockquote{margin:1rem 0;padding:.1rem 1rem;border-left:4px solid #c60;background:var(--soft)}
pre{background:var(--soft);padding:.75rem;white-space:pre-wrap;overflow-wrap:anywhere}
.answer{font-size:1.4rem;font-weight:600;margin:.2rem 0 0}.doubt{color:#c60}
nav a{margin-right:1.2em}
section+section{border-top:2px solid var(--line);margin-top:3rem}
@media print{body{max-width:none}}
"""


def check_installed(formats: list[str]) -> None:
    """Refuse formats whose programs are not installed.

    ExportRefused where a program is missing; the message names the extra that brings it.
    """
    for kind in formats:
        for name in ("pypandoc", "typst") if kind == "pdf" else ("pypandoc",):
            if find_spec(name) is None:
                raise ExportRefused(
                    f"--format {kind} needs {name}, which is not installed: "
                    "pip install 'perflab[documents]'"
                )


def docx(text: str, folder: Path) -> bytes:
    """Return sections as a Word document; links to pictures are relative to ``folder``."""
    target = folder / "document.docx"
    document = json.loads(_convert(_sized(text, folder), "json", folder))
    for each in _elements(document["blocks"]):
        if each["t"] == "Table":
            _fit_columns(each["c"])
    _convert(json.dumps(document), "docx", folder, target, "json")
    return target.read_bytes()


def _fit_columns(table: list[Any]) -> None:
    """Give the columns of a table widths by their longest cells; pandoc gives all the same."""
    _, _, columns, head, bodies, _ = table
    rows = [*head[1], *(row for body in bodies for row in body[3])]
    lengths = [
        max(
            len("".join(each["c"] for each in _elements(cell) if each["t"] == "Str")) for cell in of
        )
        for of in zip(*(row[1] for row in rows), strict=True)
    ]
    lengths = [min(max(length, FEWEST_LETTERS), MOST_LETTERS) for length in lengths]
    for column, length in zip(columns, lengths, strict=True):
        column[1] = {"t": "ColWidth", "c": length / sum(lengths)}


def _elements(part: Any) -> Iterator[dict[str, Any]]:
    """Yield all elements of a part of a document of pandoc, outer ones first."""
    if isinstance(part, dict):
        if "t" in part:
            yield part
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        yield from _elements(inner)


def pdf(text: str, folder: Path, title: str) -> bytes:
    """Return sections as PDF; links to pictures are relative to ``folder``.

    ExportRefused where the typst compiler refuses the document; the message is its own.
    """
    import typst

    body = _convert(_sized(text, folder, default_width="100%"), "typst", folder)
    source = folder / "document.typ"
    quoted_title = title.replace("\\", "\\\\").replace('"', '\\"')
    source.write_text(f'#set document(title: "{quoted_title}", date: none)\n{TYPST}\n{body}')
    try:
        # Without a date equal documents have equal bytes.
        document = typst.compile(
            str(source), root=str(folder), ignore_system_fonts=True, timestamp=0
        )
    except typst.TypstError as error:
        raise ExportRefused(f"the PDF cannot be set: {error}") from error
    assert isinstance(document, bytes)
    return document


def _sized(text: str, folder: Path, default_width: str = "") -> str:
    """Return a section with a width for every picture that is too tall for a page."""

    def sized(picture: re.Match[str]) -> str:
        width, height = _size(folder / picture[1])
        is_tall = height / width > TALLEST_IN / WIDEST_IN
        width_text = f"{TALLEST_IN * width / height:.2f}in" if is_tall else default_width
        return f"{picture[0]}{{width={width_text}}}" if width_text else picture[0]

    return IMAGE.sub(sized, text)


def _size(path: Path) -> tuple[float, float]:
    """Return width and height of a picture, in its own units."""
    if path.suffix == ".svg":
        view_box = SIZE_OF_SVG.search(path.read_bytes())
        return (float(view_box[1]), float(view_box[2])) if view_box else (1.0, 1.0)
    with Image.open(path) as picture:
        return float(picture.width), float(picture.height)


def _convert(
    text: str, to: str, folder: Path, target: Path | None = None, reader: str = READER
) -> str:
    import pypandoc

    words = [pypandoc.get_pandoc_path(), "--from", reader, "--to", to, "--wrap=preserve"]
    # Pandoc may read only this folder, and fetch nothing.
    words += ["--sandbox"] if target is None else ["--resource-path", str(folder)]
    words += [] if target is None else ["--output", str(target)]
    # Without a date equal documents have equal bytes.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    process = subprocess.run(
        words, input=text.encode(), env=environment, capture_output=True, check=False
    )
    if process.returncode:
        raise ExportRefused(
            f"pandoc refused the section: {process.stderr.decode(errors='replace')}"
        )
    return process.stdout.decode()


def page(title: str, sections: Iterable[tuple[str, Mapping[str, bytes]]]) -> str:
    """Return a page of sections in Markdown, each with the bytes of its pictures, by link.

    A picture that is missing there is replaced by its alternative text.
    """
    return html_page(title, "".join(section_html(text, pictures) for text, pictures in sections))


def html_page(title: str, body: str) -> str:
    """Return a page of the lab around a body in HTML."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"{body}</body>\n</html>\n"
    )


def section_html(text: str, pictures: Mapping[str, bytes]) -> str:
    """Return the HTML of a section."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("image", _image(pictures))
    parser.add_render_rule("table_open", lambda *_: "<div class='table'><table>\n")
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return f"<section>\n{parser.render(text)}</section>\n"


def _image(pictures: Mapping[str, bytes]) -> Any:
    def render(
        self: RendererHTML,
        tokens: Sequence[Token],
        place: int,
        options: OptionsDict,
        environment: Any,
    ) -> str:
        token = tokens[place]
        alt = self.renderInlineAsText(token.children or [], options, environment)
        link = str(token.attrs["src"])
        content = pictures.get(link)
        if content is None:
            return html.escape(alt)
        kind = KINDS[link.rpartition(".")[2]]
        data = base64.b64encode(content).decode()
        return f'<img alt="{html.escape(alt)}" src="data:{kind};base64,{data}">'

    return render
