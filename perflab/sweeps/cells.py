"""What a sweep file asks for: its cells, each a notebook with checked parameters."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab import systems
from perflab.errors import ParameterError, PerflabError
from perflab.experiments import Experiment
from perflab.experiments.experiment import OF_THE_CALL
from perflab.parameters import did_you_mean
from perflab.sweeps.axes import Setting
from perflab.sweeps.document import Problems
from perflab.sweeps.grammar import Group, SweepFile, read_sweep

ID_LENGTH = 10
NAMED = re.compile(r"^(?:unknown parameter '(?P<unknown>[^']*)'|(?P<known>\w+) = )")


@dataclass(frozen=True)
class Cell:
    """One notebook with its parameters; ``id`` says what it asks, so it stays where lines move.

    ``asked`` are all parameters of its experiment, also those that nobody gave; ``varied`` names
    those in which it differs from others of its group; ``trials`` is how many its plan has.
    """

    id: str
    notebook: str
    parameters: Mapping[str, Any]
    asked: Mapping[str, Any]
    varied: tuple[str, ...]
    line: int
    trials: int

    @property
    def label(self) -> str:
        """Return it in words: the notebook and what is varied."""
        values = (f"{name}={plain(self.parameters[name])}" for name in self.varied)
        return " ".join([self.notebook, *values])


@dataclass(frozen=True)
class Sweep:
    """A sweep file that was found to be right."""

    file: Path
    title: str
    retries: int
    cells: tuple[Cell, ...]
    content: bytes

    @property
    def name(self) -> str:
        """Return the name of its file, without its ending."""
        return self.file.stem


def open_sweep(file: Path) -> Sweep:
    """Read a sweep file and check every cell of it.

    Raises
    ------
    ParameterError
        Every problem, with the file and its line.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ParameterError(
            "perflab sweep",
            [f"{file}: {error.strerror}; name a file such as notebooks/sweeps/quick.yaml"],
        ) from None
    problems = Problems(str(file))
    read = read_sweep(content, problems)
    cells = tuple(_checked(read, problems))
    if problems.found:
        raise ParameterError(f"sweep {file}", problems.sentences())
    return Sweep(file, read.title or file.stem, read.retries, cells, content)


def systems_of(cells: Iterable[Cell]) -> set[str]:
    """Return the systems whose experiments cells execute."""
    return {systems.system_of(cell.notebook) for cell in cells}


def identity(notebook: str, parameters: Mapping[str, Any]) -> str:
    """Return the id of a cell: a digest of what it asks."""
    text = json.dumps([notebook, parameters], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]


def plain(value: Any) -> str:
    """Return a parameter's value as it is typed on a command line."""
    return ",".join(map(plain, value)) if isinstance(value, list) else str(value)


def _checked(read: SweepFile, problems: Problems) -> Iterator[Cell]:
    used: set[str] = set()
    lines: dict[str, int] = {}
    all_known = bool(read.groups)
    for group in read.groups:
        chosen = _experiment(group, problems)
        if chosen is None:
            all_known = False
            continue
        fields = chosen.parameters.model_fields
        used |= set(fields)
        shared = {name: each for name, each in read.shared.items() if name in fields}
        for cell in _cells_of(group, chosen, shared, problems):
            if cell.id in lines:
                problems.add(
                    cell.line,
                    f"'{cell.label}' is asked for already on line {lines[cell.id]}; more blocks "
                    "measure more of one thing",
                )
            lines.setdefault(cell.id, cell.line)
            yield cell
    for name, setting in read.shared.items() if all_known else ():
        if name not in used:
            nearest = did_you_mean(name, used)
            problems.add(setting.line, f"no notebook of the sweep has '{name}'{nearest}")


def _experiment(group: Group, problems: Problems) -> Experiment | None:
    try:
        return systems.experiment(group.notebook)
    except ParameterError as error:
        problems.add(group.line, f"notebook: {error.problems[0]}")
    except PerflabError as error:
        problems.add(group.line, f"notebook: {error}")
    return None


def _cells_of(
    group: Group, chosen: Experiment, shared: Mapping[str, Setting], problems: Problems
) -> Iterator[Cell]:
    broken = {line for line, _ in problems.found}
    for combination in itertools.product(*group.axes):
        varied = {name: each for part in combination for name, each in part.items()}
        settings = {**shared, **group.fixed, **varied}
        given = {name: setting.value for name, setting in settings.items()}
        try:
            checked = chosen.check(given)
            trials = checked.planned_blocks * len(chosen.treatments(checked))
        except ParameterError as error:
            for text in error.problems:
                setting = _about(text, settings)
                if setting and setting.value is None and setting.line in broken:
                    continue  # it could not be read, which was told
                line = setting.line if setting else group.line
                problems.add(line, f"{group.notebook}: {text}")
            continue
        except PerflabError as error:
            problems.add(group.line, f"{group.notebook}: {error}")
            continue
        asked = checked.model_dump(mode="json", exclude=set(OF_THE_CALL))
        words = {name: asked[name] for name in given}
        line = next((each.line for each in varied.values()), group.line)
        yield Cell(
            identity(group.notebook, words),
            group.notebook,
            words,
            asked,
            tuple(varied),
            line,
            trials,
        )


def _about(text: str, settings: Mapping[str, Setting]) -> Setting | None:
    """Return the parameter that a sentence is about, where it is about one that is given."""
    found = NAMED.match(text)
    return settings.get(found["unknown"] or found["known"]) if found else None
