"""Flags of commands, in the panels of their help."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from perflab.errors import ParameterError
from perflab.load.flags import FLAGS


def panel_option(text: str, panel: str, *names: str) -> Any:
    """Return an option in a panel; without names it is called after its parameter.

    Its default is not shown: most are 0 or empty, which would tell a reader little.
    """
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False)


def load_flag(name: str, default: str = "", panel: str = "") -> Any:
    """Return a flag of a load; ``default`` stands behind its text, for what is not given."""
    flag = FLAGS[name]
    text = f"{flag.text} {default}".rstrip()
    return panel_option(text, panel or flag.panel, *flag.names)


def refuse_ignored(command: str, flag: str, others: Mapping[str, object]) -> None:
    """Raise ParameterError for every other option that has a value, as the flag ignores them."""
    if ignored := [f"{other} does not go with {flag}" for other, value in others.items() if value]:
        raise ParameterError(command, ignored)
