"""The grammar of a sweep file: notebooks, fixed parameters, and varied parameters.

A value means the same as on the command line. YAML 1.1 takes ``no`` for false, ``0123`` for 83 and
``1:30`` for 90; here each is a text. YAML loaders keep the last of two equal keys; here these are a
problem. Tags construct nothing.

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
          of: {requests: {integers: [200, 1000]}}
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from perflab.errors import ParameterError
from perflab.parameters import did_you_mean, from_text
from perflab.trials.experiment import OF_THE_CALL

MOST_CELLS = 5_000
DIGITS = 6
VALUES = "a list of values, or {range: [FIRST, LAST, STEP]}"
DRAWN = "a list to choose from, or {uniform: [LOW, HIGH]}, or {integers: [LOW, HIGH]}"


def _cell_parameter(name: str) -> str:
    if name in OF_THE_CALL:
        raise ValueError("is no parameter of cells: the sweep itself has --resume and --wait")
    return name


def _values(axis: Any) -> list[Any]:
    """Return the values of a list or a range."""
    if isinstance(axis, dict) and [*axis] == ["range"]:
        first, last, step = _numbers(axis["range"], 3, VALUES)
        return _range(first, last, step)
    if not isinstance(axis, list) or not axis:
        raise ValueError(f"give {VALUES}")
    return axis


def _range(first: float, last: float, step: float) -> list[int | float]:
    if not step or (last - first) * step < 0:
        raise ValueError(f"from {first} to {last} no step of {step} leads")
    # Decimals avoid the rounding of floats such as 0.1.
    begin, end, by = (Decimal(repr(value)) for value in (first, last, step))
    count = math.floor((end - begin) / by) + 1
    if count > MOST_CELLS:
        raise ValueError(f"the range has {count:,} values; {MOST_CELLS:,} are the most")
    typed = int if all(isinstance(value, int) for value in (first, last, step)) else float
    return [typed(begin + place * by) for place in range(count)]


def _drawn(axis: Any) -> Any:
    """Refuse an axis from which no value can be drawn."""
    if isinstance(axis, list) and axis:
        return axis
    if isinstance(axis, dict) and [*axis] in (["uniform"], ["integers"]):
        ((word, ends),) = axis.items()
        low, high = _numbers(ends, 2, DRAWN)
        if low >= high:
            raise ValueError(f"{low} is not below {high}")
        if word == "uniform" or (isinstance(low, int) and isinstance(high, int)):
            return axis
        raise ValueError("both ends of integers must be whole numbers")
    raise ValueError(f"give {DRAWN}")


def _numbers(ends: Any, count: int, form: str) -> list[int | float]:
    numbers = ends if isinstance(ends, list) else []
    if len(numbers) != count or not all(type(number) in (int, float) for number in numbers):
        raise ValueError(f"give {form}")
    return numbers


Name = Annotated[str, AfterValidator(_cell_parameter)]
Values = Annotated[list[Any], BeforeValidator(_values), Field(max_length=MOST_CELLS)]
Drawn = Annotated[Any, BeforeValidator(_drawn)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Sample(_Section):
    """Combinations that are drawn at random; equal seeds draw equal ones."""

    count: int = Field(ge=1, le=MOST_CELLS)
    of: dict[Name, Drawn] = Field(min_length=1)


class Group(_Section):
    """Cells of one notebook: fixed and varied parameters."""

    notebook: str
    parameters: dict[Name, Any] = {}
    grid: dict[Name, Values] = {}
    zip: dict[Name, Values] = {}
    sample: Sample | None = None

    @model_validator(mode="after")
    def _fit_together(self) -> Group:
        lengths = {name: len(values) for name, values in self.zip.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} {count}" for name, count in lengths.items())
            raise ValueError(f"zip: its lists go together, so give as many of each ({shown})")
        names = [*self.parameters, *self.grid, *self.zip, *(self.sample.of if self.sample else ())]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"'{twice[0]}' is given twice; give it once")
        return self


class SweepFile(_Section):
    """A sweep file as it is written."""

    title: str = ""
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    retries: int = Field(default=1, ge=0, le=10)
    parameters: dict[Name, Any] = {}
    cells: list[Group] = Field(min_length=1)

    @model_validator(mode="after")
    def _what_is_drawn_stays_the_same(self) -> SweepFile:
        if self.seed is None and any(group.sample for group in self.cells):
            raise ValueError("sample: give the file a seed (seed: 7), so that it stays the same")
        return self


class _Loader(yaml.BaseLoader):  # type: ignore[misc]
    """Reads plain words as the command line does, and refuses a key that stands twice."""

    def construct_scalar(self, node: yaml.ScalarNode) -> Any:
        quoted_or_block = node.style is not None
        return str(node.value) if quoted_or_block else from_text(str(node.value))

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
    except UnicodeDecodeError as error:
        problems = [f"is not UTF-8; save it as UTF-8 ({error.reason}, byte {error.start})"]
    except RecursionError:
        problems = ["is nested too deeply"]
    except TypeError as error:
        problems = [str(error)]
    except yaml.YAMLError as error:
        problems = [f"is no YAML: {' '.join(str(error).split())}"]
    raise ParameterError(f"sweep {file}", problems) from None


def _sentence(error: Any) -> str:
    place = [str(part) for part in error["loc"] if part != "[key]"]
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        kinds: dict[str, type[_Section]] = {"cells": Group, "sample": Sample}
        outer = (kinds[part] for part in reversed(place[:-1]) if part in kinds)
        known = list(next(outer, SweepFile).model_fields)
        nearest = did_you_mean(place[-1], known) or f"; there are: {', '.join(known)}"
        message = f"is not known here{nearest}"
    return f"{'.'.join(place)}: {message}" if place else message


def axes_of(group: Group, seed: int | None) -> list[list[dict[str, Any]]]:
    """Return the axes of a group, each a list of alternatives, to be combined with all others.

    A sample needs the ``seed`` of the file.
    """
    axes = [[{name: value} for value in values] for name, values in group.grid.items()]
    if group.zip:
        rows = zip(*group.zip.values(), strict=True)
        axes.append([dict(zip(group.zip, row, strict=True)) for row in rows])
    if group.sample:
        draws = {
            name: _draws(axis, random.Random(f"{seed}/{group.notebook}/{name}"))
            for name, axis in group.sample.of.items()
        }
        count = range(group.sample.count)
        axes.append([{name: next(values) for name, values in draws.items()} for _ in count])
    return axes


def _draws(axis: Any, source: random.Random) -> Iterator[Any]:
    while True:
        if isinstance(axis, list):
            yield source.choice(axis)
        elif "integers" in axis:
            yield source.randint(*axis["integers"])
        else:
            # Few digits, as somebody would type the value.
            yield float(f"{source.uniform(*axis['uniform']):.{DIGITS}g}")
