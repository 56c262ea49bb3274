"""Reads tables of text (CSV) row by row into models; an error names file, line and cell."""

from __future__ import annotations

from collections.abc import Iterator
from csv import DictReader
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from perflab.errors import ParameterError, RecordingError
from perflab.parameters import check, unknown

P = TypeVar("P", bound=BaseModel)


def rows_of(path: Path, model: type[P]) -> list[P]:
    """Return the rows of a table, each as a model; the columns are fields of it.

    An empty cell, as a column that is left out, has the field's default.

    RecordingError where the table is missing, a column is unknown or a cell holds what its field
    does not allow.
    """
    return [checked(model, line, where) for where, line in lines_of(path)]


def lines_of(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield where each row of a table stands, and its cells by column, without the empty ones.

    RecordingError where the table is missing, or a row has another number of cells than the head.
    """
    if not path.is_file():
        raise RecordingError(f"{path}: is missing")
    with path.open(encoding="utf-8", newline="") as file:
        lines = DictReader(file, restkey="", strict=True)
        for line in lines:
            where = f"{path}, line {lines.line_num}"
            if "" in line or None in line.values():
                columns = ", ".join(lines.fieldnames or ())
                raise RecordingError(f"{where}: it needs a cell for each column: {columns}")
            yield where, {column: text for column, text in line.items() if text}


def checked(model: type[P], cells: dict[str, str], where: str) -> P:
    """Return a row as a model; RecordingError where a cell is not as its field wants it."""
    problems = unknown("column", cells, model.model_fields)
    fields = model.model_fields.items()
    needed = [name for name, field in fields if field.is_required() and name not in cells]
    problems += [f"{name}: each row needs it" for name in needed]
    if not problems:
        try:
            return check(model, cells, where)
        except ParameterError as error:
            problems = list(error.problems)
    raise RecordingError(f"{where}: {'; '.join(problems)}")
