"""The console that commands print to."""

from __future__ import annotations

import sys

from rich.console import Console

PLAIN_WIDTH = 160


def console() -> Console:
    """Return a console as wide as the terminal, and wide enough for tables in a file or pipe."""
    return Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
