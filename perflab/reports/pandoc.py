"""Sections as Word, LaTeX and PDF, by pandoc and typst: an extra, as most users need neither.

PDF goes from pandoc's Typst to the typst compiler: both are wheels that hold all they need, fonts
too, so that no TeX and no package of the system is asked for.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

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
# A picture as pandoc writes it; the last sizes it to its line.
IMAGE = re.compile(r"(?<=image\()(\"(?:[^\"\\]|\\.)*\")")


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
    _convert(text, "docx", folder, target)
    return target.read_bytes()


def tex(text: str) -> str:
    """Return a section as LaTeX, without what stands around it in a document."""
    return _convert(text, "latex", Path())


def tex_document(text: str) -> tuple[str, str]:
    """Return what stands before and after the sections of ``text`` in a document in LaTeX."""
    begin = "\\begin{document}\n"
    head, _, _ = _convert(text, "latex", Path(), options=["--standalone"]).partition(begin)
    return head + begin, "\\end{document}\n"


def pdf(text: str, folder: Path, title: str) -> bytes:
    """Return sections as PDF; links to pictures are relative to ``folder``.

    Raises
    ------
    ExportRefused
        The compiler does not take what it is given; the message is its own.
    """
    import typst

    body = IMAGE.sub(r"\1, width: 100%", _convert(text, "typst", folder))
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
