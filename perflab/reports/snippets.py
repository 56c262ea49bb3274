"""What to paste into a document so that it shows a figure: Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perflab.figures import View
from perflab.figures.export import CAPTION, provenance
from perflab.figures.origin import commit, n_text
from perflab.figures.style import PLAIN, Style
from perflab.recordings import Run
from perflab.reports.markdown import cell

_IN_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "%": r"\%", "&": r"\&", "#": r"\#",
    "_": r"\_", "$": r"\$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "\N{GREEK SMALL LETTER RHO}": r"$\rho$", "\N{MINUS SIGN}": "$-$",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$",
}  # fmt: skip


def caption(view: View, run: Run, shown: Path) -> str:
    """Return what a figure shows, of how many trials, and where they come from.

    And how to read it, where the file that is ``shown`` has no room to say so.
    """
    title = view.title[:1].upper() + view.title[1:]
    how = str(provenance(shown).get(CAPTION, ""))
    said = [f"{title}.", how, f"{n_text(run)}.", f"Run {run.run_id}, commit {commit(run.record)}."]
    return " ".join(filter(None, said))


def alternative_text(view: View, run: Run) -> str:
    """Return what is read to those who do not see a figure."""
    return f"{run.record.experiment}: {view.title}"


def in_markdown(view: View, run: Run, links: Mapping[str, Sequence[Path]]) -> str:
    """Return Markdown that shows a figure with its caption and a link to its table.

    Parameters
    ----------
    links : mapping
        Paths as they shall stand in the document, by suffix without its dot; what a browser can
        show is taken, SVG first.
    """
    shown = next((links[suffix][0] for suffix in ("svg", "png") if links.get(suffix)), None)
    table = f" ([table](<{links['csv'][0].as_posix()}>))" if links.get("csv") else ""
    if shown is None:
        pdf = links["pdf"][0]
        words = cell(caption(view, run, pdf))
        return f"[{cell(alternative_text(view, run))}](<{pdf.as_posix()}>): {words}{table}"
    image = f"![{cell(alternative_text(view, run))}](<{shown.as_posix()}>)"
    return f"{image}\n\n*{cell(caption(view, run, shown))}*{table}"


def in_latex(
    view: View, run: Run, links: Mapping[str, Sequence[Path]], style: Style = PLAIN
) -> str:
    """Return LaTeX that shows a figure in its column, or over both: PDF first, else PNG.

    A SVG alone is named as it is: package ``svg`` has another command for it.
    """
    suffix = next((each for each in ("pdf", "png", "svg") if links.get(each)), "svg")
    shown = links[suffix][0]
    command = r"\includesvg" if suffix == "svg" else r"\includegraphics"
    path = (shown.with_suffix("") if suffix == "svg" else shown).as_posix()
    place, width = ("figure", "column") if style.sheet.narrow else ("figure*", "text")
    return "\n".join(
        [
            rf"\begin{{{place}}}",
            rf"  {command}[width=\{width}width]{{{path}}}",
            rf"  \caption{{{escaped(caption(view, run, shown))}}}",
            rf"  \label{{fig:{view.name.replace('_', '-')}}}",
            rf"\end{{{place}}}",
        ]
    )


def escaped(text: str) -> str:
    """Return text in which no letter is a command of LaTeX."""
    return "".join(_IN_LATEX.get(letter, letter) for letter in text)
