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


def commands(parent: Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Command]]:
    """Yield every command and subcommand, each with its words."""
    for name, command in sorted(parent.commands.items()):
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


EVERY = dict(commands(typer.main.get_command(app)))


def examples(help_text: str) -> list[str]:
    """Return the examples of a help text, each in one line."""
    paragraphs = re.split(r"\n\s*\n", help_text)
    texts = [text.strip() for text in paragraphs if text.strip().startswith("Example: ")]
    return [" ".join(text.removeprefix("Example: ").split()) for text in texts]


@pytest.mark.parametrize("called", EVERY)
def test_every_example_is_read_by_the_command_s_own_parser(called: str) -> None:
    command = EVERY[called]
    shown = examples(command.help or "")
    assert shown, f"'perflab {called} --help' has no example"
    for example in shown:
        words = shlex.split(example)
        length = len(called.split()) + 1
        assert words[:length] == ["perflab", *called.split()], example
        command.make_context(called, words[length:])
