"""What to paste into a document so that it shows a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perflab.figures import View
from perflab.figures.origin import commit, n_text
from perflab.recordings import Run
from perflab.reports.markdown import cell


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
        pdf = links["pdf"][0]
        words = cell(caption(view, run))
        return f"[{cell(alternative_text(view, run))}](<{pdf.as_posix()}>): {words}{table}"
    image = f"![{cell(alternative_text(view, run))}](<{shown.as_posix()}>)"
    return f"{image}\n\n*{cell(caption(view, run))}*{table}"
