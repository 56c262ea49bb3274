"""What a sweep file asks for: its cells, each a notebook with checked parameters."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from perflab import systems
from perflab.errors import ParameterError, PerflabError
from perflab.parameters import did_you_mean
from perflab.sweeps.grammar import MOST_CELLS, Group, SweepFile, axes_of, read_sweep
from perflab.trials.experiment import OF_THE_CALL, Experiment

ID_LENGTH = 10


@dataclass(frozen=True)
class Cell:
    """One notebook with its parameters; ``id`` says what it asks, wherever it stands in the file.

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
        values = (f"{name}={typed(self.parameters[name])}" for name in self.varied)
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
    """Read a sweep file and check every cell; ParameterError names all problems and places."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ParameterError(
            "perflab sweep",
            [f"{file}: {error.strerror}; name a file such as notebooks/sweeps/quick.yaml"],
        ) from None
    read = read_sweep(file, content)
    problems: list[str] = []
    cells = tuple(_cells(read, problems))
    if problems:
        raise ParameterError(f"sweep {file}", list(dict.fromkeys(problems)))
    return Sweep(file, read.title or file.stem, read.retries, cells, content)


def systems_of(cells: Iterable[Cell]) -> set[str]:
    """Return the systems whose experiments cells execute."""
    return {systems.system_of(cell.notebook) for cell in cells}


def typed(value: Any) -> str:
    """Return a parameter's value as it is typed on a command line."""
    return ",".join(map(typed, value)) if isinstance(value, list) else str(value)


def _cells(read: SweepFile, problems: list[str]) -> Iterator[Cell]:
    """Yield all cells that can be asked for, and note what no experiment can be asked for."""
    axes = [axes_of(group, read.seed) for group in read.cells]
    count = sum(math.prod(map(len, each)) for each in axes)
    if count > MOST_CELLS:
        problems.append(f"{count:,} cells are asked for; {MOST_CELLS:,} are the most")
        return
    chosen = [_experiment(number, group, problems) for number, group in enumerate(read.cells)]
    _note_unused(read, chosen, problems)
    seen: set[str] = set()
    for number, experiment in enumerate(chosen):
        if experiment is None:
            continue
        for combination in product(*axes[number]):
            varied = {name: value for part in combination for name, value in part.items()}
            cell = _cell(read, number, experiment, varied, problems)
            if cell is None:
                continue
            if cell.id in seen:
                told = "is asked for already; more blocks measure more of one thing"
                problems.append(f"cells.{number}: '{cell.label}' {told}")
            seen.add(cell.id)
            yield cell


def _experiment(number: int, group: Group, problems: list[str]) -> Experiment | None:
    try:
        return systems.experiment(group.notebook)
    except PerflabError as error:
        problems.append(f"cells.{number}: {error}")
        return None


def _note_unused(read: SweepFile, chosen: Sequence[Experiment | None], problems: list[str]) -> None:
    """Note parameters of all that no notebook has, where every notebook is known."""
    known = {name for each in chosen if each for name in _fields(each)}
    for name in read.parameters if all(chosen) else ():
        if name not in known:
            hint = did_you_mean(name, known)
            problems.append(f"parameters: no notebook of the sweep has '{name}'{hint}")


def _cell(
    read: SweepFile,
    number: int,
    chosen: Experiment,
    varied: Mapping[str, Any],
    problems: list[str],
) -> Cell | None:
    """Return a cell with what the file gives to all, to its group, and to it alone."""
    shared = {name: value for name, value in read.parameters.items() if name in _fields(chosen)}
    given = {**shared, **read.cells[number].parameters, **varied}
    try:
        checked = chosen.check(given)
        trials = checked.planned_blocks * len(chosen.treatments(checked))
    except PerflabError as error:
        texts = error.problems if isinstance(error, ParameterError) else [str(error)]
        problems += [f"cells.{number}: {chosen.name}: {text}" for text in texts]
        return None
    asked = checked.model_dump(mode="json", exclude=set(OF_THE_CALL))
    words = {name: asked[name] for name in given}
    digest = hashlib.sha256(json.dumps([chosen.name, words], sort_keys=True).encode()).hexdigest()
    return Cell(digest[:ID_LENGTH], chosen.name, words, tuple(varied), trials)


def _fields(chosen: Experiment) -> set[str]:
    return set(chosen.parameters.model_fields)
