"""What a sweep file may say: notebooks, fixed parameters, and axes that are varied.

::

    title: two pools          # optional
    seed: 7                   # needed where something is drawn
    retries: 1                # of a cell whose services or kernel failed
    parameters:               # of every notebook that has them
      backend: process
    cells:
      - notebook: sync_vs_async
        parameters: {blocks: 4}
        grid:                 # every combination
          concurrency: [10, 25]
          timeout_s: {range: [5, 15, 5]}
        zip:                  # the first of each, the second of each...
          workers: [1, 2]
          pool_size: [4, 8]
        sample:               # drawn by the seed
          count: 3
          of: {commit_delay_us: {integers: [0, 1000]}}
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from perflab.parameters import did_you_mean
from perflab.sweeps.axes import MOST_VALUES, Setting, drawn, values_of
from perflab.sweeps.document import Problems, Value, read_document

MOST_CELLS = 5_000
MOST_RETRIES = 10
AT_THE_TOP = ("title", "seed", "retries", "parameters", "cells")
OF_CELLS = ("notebook", "parameters", "grid", "zip", "sample")
DECIDED_HERE = {
    "resume": "a sweep resumes its runs itself: 'perflab sweep FILE --resume'",
    "from_run": "a sweep measures; show a run with its notebook",
    "wait_s": "give it to the sweep: 'perflab sweep FILE --wait SECONDS'",
}


@dataclass(frozen=True)
class Group:
    """Cells of one notebook: fixed parameters, and groups of axes that are combined.

    Each of ``axes`` is a list of alternatives, and each alternative sets one parameter or several.
    """

    notebook: str
    line: int
    fixed: dict[str, Setting]
    axes: list[list[dict[str, Setting]]]

    @property
    def count(self) -> int:
        """Return the number of its cells."""
        return math.prod(len(axis) for axis in self.axes)


@dataclass
class SweepFile:
    """A sweep file as it was read."""

    title: str = ""
    seed: int | None = None
    retries: int = 1
    shared: dict[str, Setting] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)


def read_sweep(content: bytes, problems: Problems) -> SweepFile:
    """Read a sweep file; all that is wrong is noted in ``problems``."""
    found = SweepFile()
    document = read_document(content, problems)
    if not isinstance(document.content, dict):
        if not problems.found:
            problems.add(document.line, f"a sweep is a table of {', '.join(AT_THE_TOP)}")
        return found
    top = _known(document, AT_THE_TOP, "a sweep", problems)
    found.title = _title(top.get("title"), problems)
    found.seed = _whole(top.get("seed"), "seed", 0, 2**63 - 1, problems)
    retries = _whole(top.get("retries"), "retries", 0, MOST_RETRIES, problems)
    found.retries = found.retries if retries is None else retries
    found.shared = _fixed(top.get("parameters"), problems)
    groups = top.get("cells")
    items = groups.content if groups else None
    if not isinstance(items, list) or not items:
        line = groups.line if groups else document.line
        problems.add(line, "cells: list at least one, such as '- notebook: sync_vs_async'")
        return found
    found.groups = [
        group for item in items if (group := _group(item, found.seed, problems)) is not None
    ]
    count = sum(group.count for group in found.groups)
    if count > MOST_CELLS:
        problems.add(document.line, f"{count:,} cells are asked for; {MOST_CELLS:,} are the most")
        found.groups = []
    return found


def _known(value: Value, names: Sequence[str], whose: str, problems: Problems) -> dict[str, Value]:
    """Return the entries of a table that it may have; all others are problems."""
    assert isinstance(value.content, dict)
    for name, entry in value.content.items():
        if name not in names:
            nearest = did_you_mean(name, names) or f"; there are: {', '.join(names)}"
            problems.add(entry.line, f"{whose} has no '{name}'{nearest}")
    return {name: entry.value for name, entry in value.content.items() if name in names}


def _title(value: Value | None, problems: Problems) -> str:
    if value is None or isinstance(value.content, str):
        return "" if value is None else str(value.content)
    problems.add(value.line, "title: write a text")
    return ""


def _whole(value: Value | None, name: str, least: int, most: int, problems: Problems) -> int | None:
    if value is None:
        return None
    number = value.content
    if isinstance(number, int) and not isinstance(number, bool) and least <= number <= most:
        return number
    problems.add(value.line, f"{name}: write a whole number from {least} to {most:,}")
    return None


def _table(value: Value | None, name: str, problems: Problems) -> Value | None:
    if value is None or isinstance(value.content, dict):
        return value
    problems.add(value.line, f"{name}: write a table of parameters, a line 'name: ...' for each")
    return None


def _fixed(value: Value | None, problems: Problems) -> dict[str, Setting]:
    table = _table(value, "parameters", problems)
    if table is None:
        return {}
    assert isinstance(table.content, dict)
    return {
        name: Setting(entry.value.plain(), entry.line)
        for name, entry in table.content.items()
        if _may_be_given(name, entry.line, problems)
    }


def _may_be_given(name: str, line: int, problems: Problems) -> bool:
    if name in DECIDED_HERE:
        problems.add(line, f"'{name}' is no parameter of cells: {DECIDED_HERE[name]}")
    return name not in DECIDED_HERE


def _group(item: Value, seed: int | None, problems: Problems) -> Group | None:
    if not isinstance(item.content, dict):
        problems.add(item.line, f"cells: each is a table of {', '.join(OF_CELLS)}")
        return None
    parts = _known(item, OF_CELLS, "an item of cells", problems)
    named = parts.get("notebook")
    fixed = _fixed(parts.get("parameters"), problems)
    notebook = str(named.content) if named and isinstance(named.content, str) else ""
    axes = [
        *_grid(_table(parts.get("grid"), "grid", problems), problems),
        *_zipped(_table(parts.get("zip"), "zip", problems), problems),
        *_sampled(_table(parts.get("sample"), "sample", problems), seed, notebook, problems),
    ]
    # What is wrong with an axis is told; all else of the cells shall be checked too.
    axes = [axis for axis in axes if axis]
    _note_twice(fixed, axes, problems)
    if not notebook:
        problems.add(named.line if named else item.line, "notebook: name the notebook of the cells")
        return None
    return Group(notebook, named.line if named else item.line, fixed, axes)


def _grid(table: Value | None, problems: Problems) -> list[list[dict[str, Setting]]]:
    columns = _columns(table, problems)
    return [[{name: each} for each in settings] for name, settings in columns.items()]


def _columns(table: Value | None, problems: Problems) -> dict[str, list[Setting]]:
    if table is None:
        return {}
    assert isinstance(table.content, dict)
    return {
        name: values_of(entry.value, name, problems)
        for name, entry in table.content.items()
        if _may_be_given(name, entry.line, problems)
    }


def _zipped(table: Value | None, problems: Problems) -> list[list[dict[str, Setting]]]:
    columns = {name: found for name, found in _columns(table, problems).items() if found}
    if table is None or not columns:
        return []
    lengths = {name: len(found) for name, found in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {count}" for name, count in lengths.items())
        problems.add(table.line, f"zip: its lists go together, so give as many of each ({shown})")
        return []
    rows = zip(*columns.values(), strict=True)
    return [[dict(zip(columns, row, strict=True)) for row in rows]]


def _sampled(
    table: Value | None, seed: int | None, notebook: str, problems: Problems
) -> list[list[dict[str, Setting]]]:
    if table is None:
        return []
    parts = _known(table, ("count", "of"), "sample", problems)
    count = _whole(parts.get("count"), "count", 1, MOST_VALUES, problems)
    of = _table(parts.get("of"), "of", problems)
    for name in ("count", "of"):
        if name not in parts:
            problems.add(table.line, f"sample: '{name}' is missing; give count and of")
    if seed is None:
        problems.add(
            table.line, "sample: give the file a seed (seed: 7), so that it stays the same"
        )
    if of is None:
        return []
    assert isinstance(of.content, dict)
    if not of.content:
        problems.add(of.line, "sample: of names no parameter; give at least one")
    columns = {
        name: drawn(entry.value, name, count or 1, f"{seed}/{notebook}", problems)
        for name, entry in of.content.items()
        if _may_be_given(name, entry.line, problems)
    }
    if count is None or seed is None or not columns or not all(columns.values()):
        return []
    return [[dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]]


def _note_twice(
    fixed: dict[str, Setting], axes: list[list[dict[str, Setting]]], problems: Problems
) -> None:
    """Note parameters that one item gives in two ways."""
    lines = {name: setting.line for name, setting in fixed.items()}
    for axis in axes:
        for name, setting in (axis[0] if axis else {}).items():
            if name in lines:
                problems.add(
                    setting.line, f"'{name}' is given already on line {lines[name]}; give it once"
                )
            lines.setdefault(name, setting.line)
