"""Numbers in the results of another load generator, which the lab passes on and does not check."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from perflab.recordings.responses import at_least_column
from perflab.stacks.json_pointer import find

# Of each request of the other generator; where it does not tell one, NaN or an empty text.
REQUEST: Mapping[str, str] = {
    "place": "int64",
    "start_ms": "double",
    "first_byte_ms": "double",
    "end_ms": "double",
    "bytes": "double",
    "outcome": "string",
}


def told_columns(
    answer: Any, columns: Mapping[str, str], bounds: Mapping[str, tuple[str, ...]]
) -> dict[str, float]:
    """Return the numbers that an answer holds, by column.

    Parameters
    ----------
    answer : any
        The results, as JSON.
    columns : mapping
        Column to the JSON Pointer of its number; ``null`` there is NaN.
    bounds : mapping
        Column to pointers: where one of them leads to true or a number other than 0, the number is
        a lower bound. The column is then NaN, and ``*_at_least`` has the number, as of the lab's
        own bounds.

    Raises
    ------
    LookupError
        There is no number at a pointer; the message names it.
    """
    found: dict[str, float] = {}
    for column, pointer in columns.items():
        value = _number(answer, pointer)
        # All are asked, so that a pointer that leads nowhere is told of in every trial.
        cut_off = [_number(answer, each, or_bool=True) for each in bounds.get(column, ())]
        if any(cut_off):
            found |= {column: math.nan, at_least_column(column): value}
        else:
            found[column] = value
    return found


def told_requests(answer: Any, pointer: str, fields: Mapping[str, str]) -> pd.DataFrame:
    """Return the other generator's own record of its requests, with the columns of ``REQUEST``.

    Parameters
    ----------
    pointer : str
        Where the list of its requests is; ``place`` is the place in it.
    fields : mapping
        Column to the JSON Pointer within one request.

    Raises
    ------
    LookupError
        There is no such list, or a request of it lacks a field; the message says which.
    """
    listed = _at(answer, pointer)
    if not isinstance(listed, list):
        raise LookupError(f"no list at '{pointer}'")
    rows = [_request(place, each, fields) for place, each in enumerate(listed)]
    return pd.DataFrame(rows, columns=[*REQUEST])


def absent(columns: Iterable[str]) -> dict[str, float]:
    """Return the columns of a load whose numbers nobody told."""
    return dict.fromkeys(columns, math.nan)


def _request(place: int, told: Any, fields: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {"place": place}
    for name, kind in REQUEST.items():
        if name == "place":
            continue
        if kind == "string":
            row[name] = str(_at(told, fields[name])) if name in fields else ""
        else:
            row[name] = _number(told, fields[name]) if name in fields else math.nan
    return row


def _number(document: Any, pointer: str, or_bool: bool = False) -> float:
    value = _at(document, pointer)
    if value is None:
        return 0.0 if or_bool else math.nan
    if isinstance(value, bool) and not or_bool:
        raise LookupError(f"no number at '{pointer}' but {str(value).lower()}")
    if not isinstance(value, (int, float)) or math.isinf(value):
        raise LookupError(f"no number at '{pointer}'")
    return float(value)


def _at(document: Any, pointer: str) -> Any:
    try:
        return find(document, pointer)
    except KeyError as step:
        raise LookupError(f"nothing at '{pointer}': it has no {step}") from None
