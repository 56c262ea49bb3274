"""The cells of a sweep file, each a notebook with checked parameters."""

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
    """One notebook with its parameters; ``id`` depends on these, not on its place in the file.

    ``varied`` names the parameters that vary within its group. ``trials`` is the number of trials
    in its plan.
    """

    id: str
    notebook: str
    parameters: Mapping[str, Any]
    varied: tuple[str, ...]
    trials: int

    @property
    def label(self) -> str:
        """The notebook and the varied parameters, in words."""
        values = (f"{name}={typed(self.parameters[name])}" for name in self.varied)
        return " ".join([self.notebook, *values])


@dataclass(frozen=True)
class Sweep:
    """A checked sweep file."""

    file: Path
    title: str
    retries: int
    cells: tuple[Cell, ...]
    content: bytes

    @property
    def name(self) -> str:
        """The name of its file, without the suffix."""
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
    words = read_sweep(file, content)
    problems: list[str] = []
    cells = tuple(_cells(words, problems))
    if problems:
        raise ParameterError(f"sweep {file}", list(dict.fromkeys(problems)))
    return Sweep(file, words.title or file.stem, words.retries, cells, content)


def systems_of(cells: Iterable[Cell]) -> set[str]:
    """Return the systems of the experiments that cells execute."""
    return {systems.system_of(cell.notebook) for cell in cells}


def typed(value: Any) -> str:
    """Return a parameter's value as it is typed on a command line."""
    return ",".join(map(typed, value)) if isinstance(value, list) else str(value)


def _cells(file: SweepFile, problems: list[str]) -> Iterator[Cell]:
    """Yield all valid cells, and append a problem for every other one."""
    axes = [axes_of(group, file.seed) for group in file.cells]
    count = sum(math.prod(map(len, group_axes)) for group_axes in axes)
    if count > MOST_CELLS:
        problems.append(f"{count:,} cells are asked for; {MOST_CELLS:,} are the most")
        return
    experiments = [_experiment(number, group, problems) for number, group in enumerate(file.cells)]
    _note_unused(file, experiments, problems)
    ids: set[str] = set()
    for number, experiment in enumerate(experiments):
        if experiment is None:
            continue
        for combination in product(*axes[number]):
            varied = {name: value for part in combination for name, value in part.items()}
            cell = _cell(file, number, experiment, varied, problems)
            if cell is None:
                continue
            if cell.id in ids:
                problem = "is asked for already; more blocks measure more of one thing"
                problems.append(f"cells.{number}: '{cell.label}' {problem}")
            ids.add(cell.id)
            yield cell


def _experiment(number: int, group: Group, problems: list[str]) -> Experiment | None:
    try:
        return systems.experiment(group.notebook)
    except PerflabError as error:
        problems.append(f"cells.{number}: {error}")
        return None


def _note_unused(
    file: SweepFile, experiments: Sequence[Experiment | None], problems: list[str]
) -> None:
    """Append a problem for each shared parameter that no notebook has, where all are known."""
    known = {name for experiment in experiments if experiment for name in _fields(experiment)}
    for name in file.parameters if all(experiments) else ():
        if name not in known:
            hint = did_you_mean(name, known)
            problems.append(f"parameters: no notebook of the sweep has '{name}'{hint}")


def _cell(
    file: SweepFile,
    number: int,
    experiment: Experiment,
    varied: Mapping[str, Any],
    problems: list[str],
) -> Cell | None:
    """Return a cell with the parameters of the file, of its group, and its own."""
    shared = {name: value for name, value in file.parameters.items() if name in _fields(experiment)}
    values = {**shared, **file.cells[number].parameters, **varied}
    try:
        checked = experiment.check(values)
        trials = checked.planned_blocks * len(experiment.treatments(checked))
    except PerflabError as error:
        texts = error.problems if isinstance(error, ParameterError) else [str(error)]
        problems += [f"cells.{number}: {experiment.name}: {text}" for text in texts]
        return None
    complete = checked.model_dump(mode="json", exclude=set(OF_THE_CALL))
    words = {name: complete[name] for name in values}
    digest = hashlib.sha256(
        json.dumps([experiment.name, words], sort_keys=True).encode()
    ).hexdigest()
    return Cell(digest[:ID_LENGTH], experiment.name, words, tuple(varied), trials)


def _fields(experiment: Experiment) -> set[str]:
    return set(experiment.parameters.model_fields)
