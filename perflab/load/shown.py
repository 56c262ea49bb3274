"""The summary of a load as a notebook shows it; its numbers are those of a dict."""

from __future__ import annotations

from typing import Any

from perflab.display import escaped
from perflab.load.summary_table import table

VALID, INVALID = "#2e7d32", "#c0392b"


class LoadSummary(dict[str, Any]):
    """A summary (see ``report.summary``) that shows itself as ``perflab load`` prints it."""

    def _repr_html_(self) -> str:
        color = VALID if self["valid"] else INVALID
        style = f"border-left: 5px solid {color}; padding: 4px 8px; margin: 0;"
        # No <br> within <pre>: each would stand beside the end of its line.
        text = escaped(table(self)).replace("<br>", "\n")
        return f'<pre style="{style}">{text}</pre>'

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002
        # IPython's word for plain text; ``print`` and ``repr`` are those of any dict.
        printer.text(table(self))
