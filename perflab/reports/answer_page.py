"""A page with a section for each question: the answer, its figure, how sure it is, and links."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from perflab.analysis.answers import Answer
from perflab.analysis.findings import sentence
from perflab.reports.conversion import cell, page

EFFECT = "effect"


def answer_page(title: str, answered: Iterable[tuple[Answer, Path]], folder: Path) -> str:
    """Return the page; each answer comes with the notebook of its run, beside which figures lie.

    Links are relative to ``folder``, in which the page is to stand.
    """
    sections = [_section(answer, notebook, folder) for answer, notebook in answered]
    return page(title, [(f"# {cell(title)}\n", {}), *sections])


def _section(answer: Answer, notebook: Path, folder: Path) -> tuple[str, dict[str, bytes]]:
    """Return the section of an answer in Markdown, and its picture by link."""
    svgs = sorted(notebook.parent.glob("*.svg"), key=lambda path: path.stem != EFFECT)
    measured = any(finding.effect for finding in answer.findings)
    pictures = {_address(path, folder): path.read_bytes() for path in svgs[:measured]}
    links = {
        "notebook": notebook,
        "section for a document": notebook.parent / f"{notebook.parent.name}.md",
        "numbers of the figure": notebook.parent / f"{svgs[0].stem if svgs else EFFECT}.csv",
        "all figures and tables": notebook.parent,
    }
    parts = [
        f"## {cell(answer.question)}",
        f"**{cell(answer.text)}**",
        f"Study: {cell(answer.study)}" if answer.study else "",
        *(f"![{cell(answer.question)}]({link})" for link in pictures),
        *(cell(sentence(finding)) for finding in answer.findings),
        ", ".join(
            f"[{words}]({_address(path, folder)})" for words, path in links.items() if path.exists()
        ),
    ]
    return "\n\n".join(filter(None, parts)), pictures


def _address(path: Path, folder: Path) -> str:
    return quote(os.path.relpath(path, folder))
