"""What a sweep file asks for: its cells, each a notebook with checked parameters."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from perflab import systems
from perflab.errors import ParameterError, PerflabError
from perflab.experiments import Experiment
from perflab.experiments.experiment import OF_THE_CALL
from perflab.parameters import did_you_mean
from perflab.sweeps.document import Document, Place, Problems
from perflab.sweeps.grammar import MOST_CELLS, SweepFile, axes_of, read_sweep

ID_LENGTH = 10
NAMED = re.compile(r"unknown parameter '([^']*)'|(\w+) = ")


@dataclass(frozen=True)
class Cell:
    """One notebook with its parameters; ``id`` says what it asks, so it stays where lines move.

    ``varied`` names the parameters in which it differs from others of its group; ``trials`` is how
    many its plan has.
    """

    id: str
    notebook: str
    parameters: Mapping[str, Any]
    varied: tuple[str, ...]
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
    read, document = read_sweep(content, problems)
    cells = _Checking(read, document, problems).cells() if read else []
    if problems.found or not read:
        raise ParameterError(f"sweep {file}", problems.sentences())
    return Sweep(file, read.title or file.stem, read.retries, tuple(cells), content)


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


class _Checking:
    """Makes cells of what a file says, and notes what no experiment can be asked for."""

    def __init__(self, read: SweepFile, document: Document, problems: Problems) -> None:
        self._read = read
        self._document = document
        self._problems = problems
        self._lines: dict[str, int] = {}

    def cells(self) -> list[Cell]:
        """Return all cells that can be asked for."""
        chosen = [self._experiment(number) for number in range(len(self._read.cells))]
        if all(chosen):
            self._note_unused({name for each in chosen if each for name in _fields(each)})
        axes = [axes_of(group, self._read.seed) for group in self._read.cells]
        count = sum(math.prod(map(len, each)) for each in axes)
        if count > MOST_CELLS:
            self._problems.add(1, f"{count:,} cells are asked for; {MOST_CELLS:,} are the most")
            return []
        combined = (
            (number, each) for number in range(len(axes)) for each in product(*axes[number])
        )
        found = [self._cell(number, chosen[number], each) for number, each in combined]
        return [cell for cell in found if cell]

    def _experiment(self, number: int) -> Experiment | None:
        try:
            return systems.experiment(self._read.cells[number].notebook)
        except PerflabError as error:
            self._note(error, "notebook", number)
            return None

    def _note_unused(self, known: set[str]) -> None:
        for name in self._read.parameters:
            if name not in known:
                text = f"no notebook of the sweep has '{name}'{did_you_mean(name, known)}"
                self._problems.add(self._document.line_of(("parameters", name)), text)

    def _cell(
        self, number: int, chosen: Experiment | None, combination: Iterable[Mapping[str, Any]]
    ) -> Cell | None:
        if chosen is None:
            return None
        shared = {k: v for k, v in self._read.parameters.items() if k in _fields(chosen)}
        varied = {name: value for part in combination for name, value in part.items()}
        given = {**shared, **self._read.cells[number].parameters, **varied}
        try:
            checked = chosen.check(given)
            trials = checked.planned_blocks * len(chosen.treatments(checked))
        except PerflabError as error:
            self._note(error, chosen.name, number)
            return None
        asked = checked.model_dump(mode="json", exclude=set(OF_THE_CALL))
        words = {name: asked[name] for name in given}
        cell = Cell(identity(chosen.name, words), chosen.name, words, tuple(varied), trials)
        line = self._line(number, next(iter(varied), "notebook"))
        if cell.id in self._lines:
            told = f"'{cell.label}' is asked for already on line {self._lines[cell.id]}"
            self._problems.add(line, f"{told}; more blocks measure more of one thing")
        self._lines.setdefault(cell.id, line)
        return cell

    def _note(self, error: PerflabError, whose: str, number: int) -> None:
        """Note what is wrong, on the line of the parameter that it is about where it names one."""
        for text in error.problems if isinstance(error, ParameterError) else [str(error)]:
            named = NAMED.match(text)
            line = self._line(number, (named[1] or named[2]) if named else "notebook")
            self._problems.add(line, f"{whose}: {text}")

    def _line(self, number: int, name: str) -> int:
        """Return the line on which a group of cells, or all of them, are given something."""
        group: Place = ("cells", number)
        places: list[Place] = [(*group, part, name) for part in ("parameters", "grid", "zip")]
        places += [(*group, "sample", "of", name), ("parameters", name)]
        known = (each for each in places if each in self._document.lines)
        return self._document.line_of(next(known, (*group, "notebook")))


def _fields(chosen: Experiment) -> set[str]:
    return set(chosen.parameters.model_fields)
