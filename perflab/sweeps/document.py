"""YAML read strictly, with the line of everything, and all that is wrong with it at once.

PyYAML's events are read, not its objects: they carry lines, construct nothing, and leave the
meaning of a word to the reader. YAML 1.1 takes ``no`` for false, ``0123`` for 83 and ``1:30`` for
90, and its loaders keep the last of two equal keys; here each of these is a problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

MOST_BYTES = 1_000_000
DEEPEST = 12
INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
LONGEST_NUMBER = 30
CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}
# What YAML 1.1 or 1.2 takes for a number, a time or a truth, and its writer perhaps not.
TRAP = re.compile(
    r"[-+]?[0-9][0-9_]*(:[0-9_.]*)*|[-+]?0[box][0-9a-f_]*|[-+]?\.?[0-9][0-9_.]*(e[-+]?[0-9]+)?"
    r"|[-+]?[0-9]+\.|[-+]?\.(inf|nan)|[-+]?(inf|infinity|nan)|y|n|yes|no|on|off|true|false|null"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*",
    re.IGNORECASE,
)

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class Value:
    """A value and the line on which it begins; the items of a list, or the entries of a table."""

    line: int
    content: Scalar | list[Value] | dict[str, Entry]

    def plain(self) -> object:
        """Return it without lines."""
        if isinstance(self.content, list):
            return [item.plain() for item in self.content]
        if isinstance(self.content, dict):
            return {name: entry.value.plain() for name, entry in self.content.items()}
        return self.content


@dataclass(frozen=True)
class Entry:
    """A value of a table, and the line of its key."""

    line: int
    value: Value


@dataclass
class Problems:
    """What is wrong with a file: sentences by line, each told once."""

    file: str
    found: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """Note a problem of a line (counted from 1)."""
        if (line, text) not in self.found:
            self.found.append((line, text))

    def sentences(self) -> list[str]:
        """Return ``file:line: problem``, in the order of the file."""
        in_order = sorted(self.found, key=lambda each: each[0])
        return [f"{self.file}:{line}: {text}" for line, text in in_order]


def read_document(content: bytes, problems: Problems) -> Value:
    """Read a file's content; what is wrong is noted, and what can be read is returned."""
    nothing = Value(1, None)
    if len(content) > MOST_BYTES:
        problems.add(1, f"has {len(content):,} bytes; a sweep has at most {MOST_BYTES:,}")
        return nothing
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        problems.add(line, f"byte {content[error.start]:#04x} is not UTF-8; save the file as UTF-8")
        return nothing
    try:
        return _Reader(yaml.parse(text, Loader=yaml.SafeLoader), problems).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.add(mark.line + 1 if mark else 1, f"is no YAML: {error.problem or error.context}")
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        problems.add(line, f"is no YAML: {error.reason} (character {error.character:#04x})")
    return nothing


class _Reader:
    """Makes values of events; a broken value is None, and reading goes on behind it."""

    def __init__(self, events: Iterator[yaml.Event], problems: Problems) -> None:
        self._events = events
        self._problems = problems

    def document(self) -> Value:
        value = Value(1, None)
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                first = self._value(next(self._events), 0)
                if documents == 1:
                    value = first
                elif documents == 2:
                    self._problems.add(first.line, "a second document begins; a sweep is one")
        return value

    def _value(self, event: yaml.Event, depth: int) -> Value:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            self._problems.add(line, f"*{event.anchor}: aliases are not read; write the value out")
            return Value(line, None)
        if getattr(event, "anchor", None):
            self._problems.add(line, f"&{event.anchor}: anchors are not read; leave it out")
        if isinstance(event, yaml.ScalarEvent):
            return Value(line, self._scalar(event, line))
        if event.tag:
            self._problems.add(line, f"{event.tag}: tags are not read; leave it out")
        if depth == DEEPEST:
            self._problems.add(line, f"is nested deeper than {DEEPEST} levels")
        if isinstance(event, yaml.SequenceStartEvent):
            return Value(line, self._items(depth))
        return Value(line, self._entries(depth))

    def _items(self, depth: int) -> list[Value]:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._nested(event, depth))
        return items

    def _entries(self, depth: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._nested(event, depth)
            value = self._nested(next(self._events), depth)
            if not isinstance(key.content, str):
                shown = "a list or table" if isinstance(key.content, (list, dict)) else "no name"
                self._problems.add(key.line, f"the key is {shown}; a key is a word")
            elif key.content in entries:
                first = entries[key.content].line
                self._problems.add(
                    key.line, f"'{key.content}' stands here again, first on line {first}"
                )
            else:
                entries[key.content] = Entry(key.line, value)
        return entries

    def _nested(self, event: yaml.Event, depth: int) -> Value:
        if depth < DEEPEST:
            return self._value(event, depth + 1)
        # Too deep was told already; what lies below is passed over without a call for each level.
        line, open_ones = event.start_mark.line + 1, 0
        while True:
            open_ones += isinstance(event, yaml.CollectionStartEvent)
            open_ones -= isinstance(event, yaml.CollectionEndEvent)
            if not open_ones:
                return Value(line, None)
            event = next(self._events)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Scalar:
        text = event.value
        if event.tag:
            self._problems.add(line, f"{event.tag}: tags are not read; leave it out")
            return None
        if not event.implicit[0]:
            return str(text)
        if text in CONSTANTS:
            return CONSTANTS[text]
        if len(text) <= LONGEST_NUMBER and INTEGER.fullmatch(text):
            return int(text)
        if len(text) <= LONGEST_NUMBER and NUMBER.fullmatch(text) and abs(float(text)) < 1e300:
            return float(text)
        if TRAP.fullmatch(text):
            self._problems.add(
                line,
                f"{text} can be read in several ways: write it as '{text}' (quoted) where it is a "
                "word, as true or false, or as a plain number such as 83, 0.5 or 1e5",
            )
            return None
        return str(text)
