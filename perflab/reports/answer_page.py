"""A page with a card for each question: the answer, its figure, how sure it is, and links."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from perflab.analysis.answers import Answer
from perflab.analysis.findings import sentence
from perflab.reports.conversion import html_page

# An answer, the notebook of its run, beside which figures lie, and the views that belong to it.
Answered = tuple[Answer, Path, Sequence[str]]


def answer_page(title: str, answered: Iterable[Answered], folder: Path) -> str:
    """Return the page; links are relative to ``folder``, in which it is to stand."""
    cards = [_card(*each, folder) for each in answered]
    return html_page(title, "".join([f"<h1>{html.escape(title)}</h1>\n", *cards]))


def _card(answer: Answer, notebook: Path, views: Sequence[str], folder: Path) -> str:
    study = f'<p class="study">study: {html.escape(answer.study)}</p>' if answer.study else ""
    doubt = f'<p class="doubt">Doubtful: {html.escape(answer.doubt)}</p>\n' if answer.doubt else ""
    evidence = "".join(f"<p>{html.escape(sentence(finding))}</p>" for finding in answer.findings)
    alt = html.escape(f"{answer.question} {answer.text}")
    svgs = [path for view in views if (path := notebook.parent / f"{view}.svg").exists()]
    pictures = ""
    if any(finding.effect for finding in answer.findings):
        pictures = "".join(f'<img src="{_address(svg, folder)}" alt="{alt}">\n' for svg in svgs)
    links = {
        "notebook": notebook,
        "section for a document": notebook.parent / f"{notebook.parent.name}.md",
        "numbers of the figure": svgs[0].with_suffix(".csv") if svgs else None,
        "all figures and tables": notebook.parent,
    }
    present = {words: path for words, path in links.items() if path is not None and path.exists()}
    anchors = [f'<a href="{_address(path, folder)}">{words}</a>' for words, path in present.items()]
    return (
        f"<section><h2>{html.escape(answer.question)}</h2>\n"
        f'<p class="answer">{html.escape(answer.text)}</p>\n{doubt}{study}\n{pictures}'
        f"<details><summary>How sure, and why</summary>{evidence}</details>\n"
        f"<nav>{' '.join(anchors)}</nav></section>\n"
    )


def _address(path: Path, folder: Path) -> str:
    return quote(os.path.relpath(path, folder))
