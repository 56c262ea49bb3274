"""YAML with the line of each value: what is wrong with a file is told by its lines, all at once.

A value means what it means on the command line. YAML 1.1 takes ``no`` for false, ``0123`` for 83
and ``1:30`` for 90; here each is a text. Its loaders keep the last of two equal keys; here they are
a problem. Nothing is constructed by a tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from perflab.parameters import from_text

# The keys and list positions that lead to a value.
Place = tuple[str | int, ...]


@dataclass
class Problems:
    """What is wrong with a file: sentences by line (counted from 1), each told once."""

    file: str
    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Note a problem of a line."""
        if (line, text) not in self.found:
            self.found.append((line, text))

    @property
    def lines(self) -> set[int]:
        """Return the lines of which a problem was told."""
        return {line for line, _ in self.found}

    def sentences(self) -> list[str]:
        """Return ``file:line: problem``, in the order of the file."""
        in_order = sorted(self.found, key=lambda each: each[0])
        return [f"{self.file}:{line}: {text}" for line, text in in_order]


@dataclass
class Document:
    """What a file holds, and the line of every key and list item by its place."""

    content: Any = None
    lines: dict[Place, int] = field(default_factory=dict)

    def line_of(self, place: Sequence[str | int]) -> int:
        """Return the line of a place, or of what encloses it where it has none of its own."""
        known = (tuple(place[:length]) for length in range(len(place), 0, -1))
        return next((self.lines[each] for each in known if each in self.lines), 1)


def read_document(content: bytes, problems: Problems) -> Document:
    """Read a file's content; what is wrong is noted, and a value that cannot be read is None."""
    found = Document()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        problems.add(line, f"byte {content[error.start]:#04x} is not UTF-8; save the file as UTF-8")
        return found
    try:
        if node := yaml.compose(text, Loader=yaml.SafeLoader):
            found.content = _value(node, (), found.lines, problems)
    except RecursionError:
        problems.add(1, "is nested too deeply, or within itself")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.add(mark.line + 1 if mark else 1, f"is no YAML: {error.problem or error.context}")
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        problems.add(line, f"is no YAML: {error.reason} (character {error.character:#04x})")
    return found


def _value(node: yaml.Node, place: Place, lines: dict[Place, int], problems: Problems) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        items = []
        for number, item in enumerate(node.value):
            lines[*place, number] = item.start_mark.line + 1
            items.append(_value(item, (*place, number), lines, problems))
        return items
    entries: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        name = _scalar(key) if isinstance(key, yaml.ScalarNode) else None
        if not isinstance(name, str):
            problems.add(line, "the key is no name; a key is a word")
        elif name in entries:
            problems.add(line, f"'{name}' stands here again, first on line {lines[*place, name]}")
        else:
            lines[*place, name] = line
            entries[name] = _value(value, (*place, name), lines, problems)
    return entries


def _scalar(node: yaml.ScalarNode) -> Any:
    quoted_or_block = node.style is not None
    return str(node.value) if quoted_or_block else from_text(str(node.value))
