"""Every command's help has an example that its own parser understands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from perflab.cli import app

Command = Any


def commands(found: Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Command]]:
    """Yield every command and subcommand with the words by which it is called."""
    for name, each in sorted(found.commands.items()):
        if hasattr(each, "commands"):
            yield from commands(each, (*words, name))
        else:
            yield " ".join((*words, name)), each


EVERY = dict(commands(typer.main.get_command(app)))


def examples(help_text: str) -> list[str]:
    """Return the examples of a help text, each in one line."""
    paragraphs = re.split(r"\n\s*\n", help_text)
    own = [each.strip() for each in paragraphs if each.strip().startswith("Example: ")]
    return [" ".join(each.removeprefix("Example: ").split()) for each in own]


@pytest.mark.parametrize("called", EVERY)
def test_every_example_is_read_by_the_command_s_own_parser(called: str) -> None:
    command = EVERY[called]
    shown = examples(command.help or "")
    assert shown, f"'perflab {called} --help' has no example"
    for example in shown:
        words = shlex.split(example)
        given = len(called.split()) + 1
        assert words[:given] == ["perflab", *called.split()], example
        command.make_context(called, words[given:])
