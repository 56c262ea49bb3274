"""Tables and lists that show themselves: as HTML in a notebook, as plain text elsewhere.

Text wraps and is never cut. Colours are those of the page, because a notebook may be dark or light.
Styles stand in the elements, because JupyterLab drops the style sheets of notebooks that it does
not trust. All text is escaped for HTML, because cells may hold anything.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

WIDTH = 100
LINE = "1px solid rgba(128, 128, 128, 0.35)"
CELL = "vertical-align: top; white-space: normal; overflow-wrap: break-word; padding: 4px 8px;"
# Short cells stay on one line; long ones need a wide column, to have several words on a line.
SHORT, LONG = 13, 30
LONG_WIDTH = "min-width: 11em;"


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """A table that shows itself; ``table`` is the data behind it.

    ``text`` has the text of every cell, which may have several lines. The columns in ``right`` are
    aligned right. ``heading`` stands above the table, ``notes`` stand below. ``marks`` are colours
    (CSS) of a bar before a cell, by the first line of its text up to a bracket; ``links`` are
    addresses relative to the notebook, by the whole text.
    """

    table: pd.DataFrame
    text: pd.DataFrame
    right: frozenset[str] = frozenset()
    heading: str = ""
    notes: Sequence[str] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        names = map(str, self.text.columns)
        head = "".join(f'<th style="{self._style(name)}">{escaped(name)}</th>' for name in names)
        rows = "".join(
            f"<tr>{''.join(self._cell(*cell) for cell in row)}</tr>" for row in self._rows()
        )
        above = f"<p><b>{escaped(self.heading)}</b></p>" if self.heading else ""
        below = "".join(f"<p>{escaped(note)}</p>" for note in self.notes)
        body = (
            '<table style="border-collapse: collapse; margin: 0; max-width: 100%;">'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )
        return f"<div>{above}{body if len(self.text) else '<p>(no rows)</p>'}{below}</div>"

    def __repr__(self) -> str:
        body = self._aligned() or "\n\n".join(map(_record, self._rows())) or "(no rows)"
        parts = [self.heading, body, *map(_wrapped, self.notes)]
        return "\n\n".join(part for part in parts if part)

    def _rows(self) -> list[list[tuple[str, str]]]:
        """Return the column names and texts of every row; two columns may have one name."""
        names = [str(name) for name in self.text.columns]
        rows = self.text.itertuples(index=False, name=None)
        return [list(zip(names, map(str, row), strict=True)) for row in rows]

    def _aligned(self) -> str:
        """Return the rows below the names of their columns; "" where that is too wide."""
        rows = [[text for _, text in row] for row in self._rows()]
        lines = [[str(name) for name in self.text.columns], *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        if (
            not rows
            or sum(widths) + 2 * len(widths) > WIDTH
            or any("\n" in text for row in rows for text in row)
        ):
            return ""
        return "\n".join(
            "  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    def _cell(self, name: str, text: str) -> str:
        style = self._style(name)
        longest = max(map(len, text.splitlines()), default=0)
        if longest <= SHORT:
            style = style.replace("white-space: normal", "white-space: nowrap")
        elif longest >= LONG:
            style += LONG_WIDTH
        if color := self.marks.get(text.partition("\n")[0].partition(" (")[0]):
            style += f"border-left: 5px solid {color};"
        shown = escaped(text)
        if address := self.links.get(text):
            shown = f'<a href="{html.escape(address)}">{shown}</a>'
        return f'<td style="{style}">{shown}</td>'

    def _style(self, name: str) -> str:
        side = "right" if name in self.right else "left"
        return f"text-align: {side}; border-bottom: {LINE}; {CELL}"


class Lines(tuple[str, ...]):
    """Sentences that show themselves as a list; ``str`` gives a line each."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_list(self) if self else "<p>(nothing)</p>"

    def __str__(self) -> str:
        return "\n".join(self)

    def __repr__(self) -> str:
        return "\n".join(_wrapped(f"- {line}", 2) for line in self) or "(nothing)"


def named_values(rows: Iterable[tuple[str, ...]], columns: Sequence[str], heading: str) -> Shown:
    """Return rows of text, such as names and values, as a table that shows itself."""
    table = pd.DataFrame(list(rows), columns=list(columns), dtype=object)
    return Shown(table, table, heading=heading)


def plain(value: Any) -> str:
    """Return a value as people write it (``none``, ``yes``, ``1, 2``), not as Python does."""
    if value is None or value == "" or value == () or value == []:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {plain(item)}" for name, item in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(map(plain, value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def html_list(lines: Iterable[str]) -> str:
    """Return lines as an HTML list that wraps."""
    return f'<ul style="margin: 0;">{"".join(f"<li>{escaped(line)}</li>" for line in lines)}</ul>'


def escaped(text: str) -> str:
    """Return text as HTML, with its line breaks."""
    return html.escape(text).replace("\n", "<br>")


def _record(row: Sequence[tuple[str, str]]) -> str:
    """Return a row as text with a line per column."""
    width = max(len(name) for name, _ in row)
    return "\n".join(
        _wrapped(f"{name:<{width}}  {' / '.join(value.splitlines())}", width + 2)
        for name, value in row
    )


def _wrapped(text: str, indent: int = 0) -> str:
    return textwrap.fill(
        text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
