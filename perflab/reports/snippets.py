"""What to paste into a document so that it shows a figure: Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perflab.figures import View
from perflab.figures.origin import commit, n_text
from perflab.recordings import Run
from perflab.reports.markdown import cell

_IN_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "%": r"\%", "&": r"\&", "#": r"\#",
    "_": r"\_", "$": r"\$", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def caption(view: View, run: Run) -> str:
    """Return what a figure shows, of how many trials, and where they come from."""
    title = view.title[:1].upper() + view.title[1:]
    return f"{title}. {n_text(run)}. Run {run.run_id}, commit {commit(run.record)}."


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
        pdf = links["pdf"][0].as_posix()
        return f"[{cell(alternative_text(view, run))}](<{pdf}>): {cell(caption(view, run))}{table}"
    image = f"![{cell(alternative_text(view, run))}](<{shown.as_posix()}>)"
    return f"{image}\n\n*{cell(caption(view, run))}*{table}"


def in_latex(view: View, run: Run, links: Mapping[str, Sequence[Path]]) -> str:
    """Return LaTeX that shows a figure over both columns: PDF first, else PNG.

    A SVG alone is named as it is: package ``svg`` has another command for it.
    """
    suffix = next((each for each in ("pdf", "png", "svg") if links.get(each)), "svg")
    shown = links[suffix][0]
    command = r"\includesvg" if suffix == "svg" else r"\includegraphics"
    path = (shown.with_suffix("") if suffix == "svg" else shown).as_posix()
    return "\n".join(
        [
            r"\begin{figure*}",
            rf"  {command}[width=\textwidth]{{{path}}}",
            rf"  \caption{{{escaped(caption(view, run))}}}",
            rf"  \label{{fig:{view.name.replace('_', '-')}}}",
            r"\end{figure*}",
        ]
    )


def escaped(text: str) -> str:
    """Return text in which no letter is a command of LaTeX."""
    return "".join(_IN_LATEX.get(letter, letter) for letter in text)
