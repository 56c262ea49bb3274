"""The page of a sweep: one file of HTML that opens from a disk, without a server or a script."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

FIRST = ("effect",)
THUMBNAILS = 3
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em; color: #222; background: #fff; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .5em .8em; border-bottom: 1px solid #ccc; }
img { width: 15em; border: 1px solid #ddd; margin: 0 .4em .4em 0; background: #fff; }
ul { margin: 0; padding-left: 1.2em; } code { overflow-wrap: anywhere; }
.done { color: #1d6b3c; } .failed { color: #a3221a; }
.waiting, .broken, .interrupted, .paused { color: #555; }
"""


def page_of(title: str, rows: Sequence[Mapping[str, Any]], folder: Path) -> str:
    """Return the page that lies in ``folder``; its links are relative, so that all can move."""
    states = [str(row["state"]) for row in rows]
    told = ", ".join(f"{states.count(each)} {each}" for each in dict.fromkeys(states))
    body = "\n".join(_row(row, folder) for row in rows)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}'
        f"</title><style>{STYLE}</style></head>\n<body><h1>{_text(title)}</h1>\n"
        f"<p>{len(rows)} cells: {_text(told)}. The same as a table: "
        f'<a href="index.parquet">index.parquet</a>. '
        "Each verdict is of one run by itself, and p is adjusted within that run alone: among many "
        "cells some look large by chance.</p>\n<table>\n<thead><tr><th>cell</th>"
        f"<th>state</th><th>verdicts</th><th>figures</th></tr></thead>\n<tbody>\n{body}\n"
        "</tbody></table></body></html>\n"
    )


def _row(row: Mapping[str, Any], folder: Path) -> str:
    state = str(row["state"])
    links = [
        _link(words, str(row[name]), folder)
        for words, name in (("notebook", "executed"), ("run", "run"), ("log", "log"),
                            ("figures and section", "section"))
        if row[name]
    ]  # fmt: skip
    asked = "<br>".join(_text(f"{name} = {each}") for name, each in row["parameters"].items())
    cells = (
        f"<b>{_text(row['label'])}</b><br><code>{_text(row['cell'])}</code>"
        f"<details><summary>parameters</summary>{asked}</details>{', '.join(links)}",
        f'<span class="{_text(state)}">{_text(state)}</span>{_history(row)}{_counts(row)}',
        _verdicts(row),
        _thumbnails(row, folder),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _counts(row: Mapping[str, Any]) -> str:
    host = f"<br>on {_text(row['host'])}" if row["host"] else ""
    if not row["trials"]:
        return host
    return f"{host}<br>{row['valid_trials']} of {row['trials']} trials valid"


def _history(row: Mapping[str, Any]) -> str:
    if len(row["history"]) < 2:
        return ""
    items = (
        f"<li>attempt {number}: {_text(' '.join(filter(None, words)))}</li>"
        for number, *words in row["history"]
    )
    return f"<ul>{''.join(items)}</ul>"


def _verdicts(row: Mapping[str, Any]) -> str:
    if row["error"]:
        return f"{_text(row['kind'])}: {_text(row['error'])}"
    items = (
        f"<li>{_text(claim)}: <b>{_text(verdict)}</b> {_text(measured)}</li>"
        for claim, verdict, measured in row["verdicts"]
    )
    return f"<ul>{''.join(items)}</ul>" if row["verdicts"] else ""


def _thumbnails(row: Mapping[str, Any], folder: Path) -> str:
    # No browser shows what lies in an object store.
    files = [Path(each) for each in row["figures"] if "://" not in each]
    in_order = sorted(files, key=lambda path: (path.stem not in FIRST, path))
    return "".join(
        f'<a href="{_address(path, folder)}"><img loading="lazy" alt="{_text(path.stem)}" '
        f'src="{_address(path, folder)}"></a>'
        for path in in_order[:THUMBNAILS]
    )


def _link(words: str, path: str, folder: Path) -> str:
    return f'<a href="{_address(Path(path), folder)}">{_text(words)}</a>'


def _address(path: Path, folder: Path) -> str:
    # A store's address, of which a path has made one slash of two.
    address = re.sub(r"^(\w+):/(?=\w)", r"\1://", str(path))
    return html.escape(address if "://" in address else quote(os.path.relpath(path, folder)))


def _text(value: object) -> str:
    return html.escape(str(value))
