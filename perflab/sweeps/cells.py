"""Reads sweep files: notebooks with fixed and varied parameters, and the cells that these ask for.

A value means the same as on the command line. YAML 1.1 takes ``no`` for false, ``0123`` for 83 and
``1:30`` for 90; here each is a text. YAML loaders keep the last of two equal keys; here these are a
problem. Tags construct nothing.

::

    title: two pools          # optional
    retries: 1                # of a cell whose services or kernel failed
    parameters:               # of every notebook that has them
      backend: process
    cells:
      - notebook: sync_vs_async
        parameters: {blocks: 4}
        grid:                 # every combination
          concurrency: [10, 25]
        zip:                  # the first of each, the second of each...
          workers: [1, 2]
          pool_size: [4, 8]
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from perflab import systems
from perflab.credentials import masked
from perflab.errors import ParameterError, PerflabError
from perflab.load.literals import by_reference
from perflab.parameters import as_text, did_you_mean
from perflab.paths import notebooks_dir
from perflab.trials.experiment import Experiment
from perflab.trials.run_parameters import OF_THE_CALL

MOST_CELLS = 5_000
ID_LENGTH = 10
Values = Annotated[list[Any], Field(min_length=1)]


def _cell_parameter(name: str) -> str:
    if name in OF_THE_CALL:
        raise ValueError("is no parameter of cells: the sweep itself has --resume and --wait")
    return name


Name = Annotated[str, AfterValidator(_cell_parameter)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Group(_Section):
    """Cells of one notebook: fixed and varied parameters."""

    notebook: str
    parameters: dict[Name, Any] = {}
    grid: dict[Name, Values] = {}
    zip: dict[Name, Values] = {}

    @model_validator(mode="after")
    def _fit_together(self) -> Group:
        lengths = {name: len(values) for name, values in self.zip.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise ValueError(f"zip: its lists go together, so give as many of each ({shown})")
        names = [*self.parameters, *self.grid, *self.zip]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"'{twice[0]}' is given twice; give it once")
        return self

    def axes(self) -> list[list[dict[str, Any]]]:
        """Return lists of alternatives, each to be combined with those of all others."""
        axes = [[{name: value} for value in values] for name, values in self.grid.items()]
        if self.zip:
            rows = zip(*self.zip.values(), strict=True)
            axes.append([dict(zip(self.zip, row, strict=True)) for row in rows])
        return axes


class SweepFile(_Section):
    """A sweep file as it is written."""

    title: str = ""
    retries: int = Field(default=1, ge=0, le=10, strict=False)
    parameters: dict[Name, Any] = {}
    cells: list[Group] = Field(min_length=1)

    @model_validator(mode="after")
    def _can_be_planned(self) -> SweepFile:
        count = sum(math.prod(map(len, group.axes())) for group in self.cells)
        if count > MOST_CELLS:
            raise ValueError(f"{count:,} cells are asked for; {MOST_CELLS:,} are the most")
        return self


WORDS = (*SweepFile.model_fields, *Group.model_fields)


class _Loader(yaml.BaseLoader):  # type: ignore[misc]
    """Reads every word as text, as the command line does; refuses a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        entries: dict[str, Any] = {}
        for key, value in node.value:
            name = self.construct_object(key, deep)
            if not isinstance(name, str) or name in entries:
                problem = f"'{name}' is no word, or stands here twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            entries[name] = self.construct_object(value, deep)
        return entries


def read_sweep(file: Path, content: bytes) -> SweepFile:
    """Read the content of a sweep file; ParameterError lists its problems, with their places."""
    try:
        words = yaml.load(content.decode("utf-8-sig"), Loader=_Loader)
        if not isinstance(words, dict):
            raise TypeError(f"a sweep is a table of {', '.join(SweepFile.model_fields)}")
        return SweepFile.model_validate(words)
    except ValidationError as error:
        problems = [_sentence(item) for item in error.errors(include_url=False)]
    except RecursionError:
        problems = ["is nested too deeply"]
    except TypeError as error:
        problems = [str(error)]
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        problems = [f"is no YAML in UTF-8: {' '.join(str(error).split())}"]
    raise ParameterError(f"sweep {file}", problems) from None


def _sentence(error: Any) -> str:
    place = [str(part) for part in error["loc"] if part != "[key]"]
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        hint = did_you_mean(place[-1], WORDS)
        message = f"is not known here{hint}; a sweep file has: {', '.join(WORDS)}"
    return f"{'.'.join(place)}: {message}" if place else message


@dataclass(frozen=True)
class Cell:
    """One notebook with its parameters; ``id`` depends on these, not on its place in the file.

    ``own`` has the parameters that its group gives, in contrast to those of the whole file, as they
    are told. ``trials`` is the number of trials in its plan.
    """

    id: str
    notebook: str
    parameters: Mapping[str, Any]
    own: Mapping[str, Any]
    trials: int

    @property
    def label(self) -> str:
        """The notebook and its own parameters, in words."""
        values = (
            f"{name}={as_text(int(x) if isinstance(x, float) and x.is_integer() else x)}"
            for name, x in self.own.items()
        )
        return " ".join([self.notebook, *values])


@dataclass(frozen=True)
class Sweep:
    """A checked sweep file."""

    file: Path
    title: str
    retries: int
    cells: tuple[Cell, ...]
    content: bytes


def open_sweep(file: Path) -> Sweep:
    """Read a sweep file and check every cell; ParameterError names all problems and places."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ParameterError(
            "perflab sweep",
            [f"{file}: {error.strerror}; name a file such as {notebooks_dir()}/sweeps/quick.yaml"],
        ) from None
    words = read_sweep(file, content)
    cells, problems = _planned(words)
    if problems:
        raise ParameterError(f"sweep {file}", list(dict.fromkeys(problems)))
    # The content is copied into the sweep's folder.
    shown = masked(content.decode("utf-8-sig")).encode()
    return Sweep(file, words.title or file.stem, words.retries, tuple(cells), shown)


def systems_of(cells: Iterable[Cell]) -> set[str]:
    """Return the systems of the experiments that cells execute."""
    return {systems.system_of(cell.notebook) for cell in cells}


def _planned(file: SweepFile) -> tuple[list[Cell], list[str]]:
    """Return all cells, and the problems of those that cannot be."""
    cells: dict[str, Cell] = {}
    problems, unused, known = [], [*file.parameters], set[str]()
    for number, group in enumerate(file.cells):
        try:
            experiment = systems.experiment(group.notebook)
        except PerflabError as error:
            unused = []  # The notebook that is not known may have any parameter.
            problems += [f"cells.{number}: {text}" for text in _problems_of(error)]
            continue
        fields = experiment.parameters.model_fields
        known |= {*fields}
        shared = {name: value for name, value in file.parameters.items() if name in fields}
        for combination in product(*group.axes()):
            varied = {name: value for part in combination for name, value in part.items()}
            try:
                cell = _cell(experiment, shared, {**group.parameters, **varied})
            except PerflabError as error:
                texts = _problems_of(error)
                problems += [f"cells.{number}: {experiment.name}: {text}" for text in texts]
                continue
            if cell.id in cells:
                again = "is asked for already; more blocks measure more of one thing"
                problems.append(f"cells.{number}: '{cell.label}' {again}")
            cells[cell.id] = cell
    problems += [
        f"parameters: no notebook of the sweep has '{name}'{did_you_mean(name, known)}"
        for name in unused
        if name not in known
    ]
    return list(cells.values()), problems


def _problems_of(error: PerflabError) -> Sequence[str]:
    """Return the problems that an error lists, without its own heading."""
    return error.problems if isinstance(error, ParameterError) else [str(error)]


def _cell(experiment: Experiment, shared: Mapping[str, Any], own: Mapping[str, Any]) -> Cell:
    values = {**shared, **own}
    checked = experiment.check(values)
    # The headers of a file are parameters of their own.
    values = by_reference(values)
    complete = checked.model_dump(mode="json", exclude=set(OF_THE_CALL))
    # Those of a project's file, and the variants of a revision, are set by the check.
    names = values.keys() | checked.model_fields_set
    words = {name: value for name, value in complete.items() if name in names}
    told = {name: words.get(name) or values[name] for name in own}
    text = json.dumps([experiment.name, words], sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]
    plan = experiment.plan(checked)
    trials = plan.blocks * len(plan.treatments)
    return Cell(name, experiment.name, words, told, trials)
