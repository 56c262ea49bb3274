"""A table of text becomes models row by row, and what is wrong with it is named with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from perflab.errors import RecordingError
from perflab.parameters import Parameters
from perflab.recordings.typed_rows import rows_of


class Rung(Parameters):
    """A model with a field of each type that tables have."""

    name: str
    handler: Literal["threads", "async"] = "threads"
    threads: int = 40
    share: float = 0.5
    is_fast: bool = False


def table(folder: Path, text: str) -> Path:
    path = folder / "rungs.csv"
    path.write_text(text)
    return path


def test_cells_are_read_by_the_type_of_their_field_and_empty_ones_are_defaults(
    tmp_path: Path,
) -> None:
    text = 'name,handler,threads,is_fast\n"a, b",async,6,true\nc,,,\n'
    first, second = rows_of(table(tmp_path, text), Rung)
    assert first == Rung(name="a, b", handler="async", threads=6, is_fast=True)
    assert second == Rung(name="c")


# Tables that are not as wanted, each with what is said of it.
WRONG = {
    "name,thread\na,6\n": r"line 2: no column 'thread' \(did you mean 'threads'\?\)",
    "name,threads\na,6\nb,six\n": "line 3: threads = 'six': must be a whole number",
    "name,handler\na,asinc\n": "line 2: handler = 'asinc': must be 'threads' or 'async'",
    "name,threads\n,6\n": "line 2: name: each row needs it",
    "name,threads\na\n": "line 2: it needs a cell for each column: name, threads",
    "name,threads\na,6,7\n": "line 2: it needs a cell for each column: name, threads",
}


@pytest.mark.parametrize(("text", "said"), WRONG.items())
def test_a_wrong_cell_is_named_with_file_line_and_column(
    text: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(RecordingError, match=rf"rungs\.csv, {said}"):
        rows_of(table(tmp_path, text), Rung)


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"rungs\.csv: is missing"):
        rows_of(tmp_path / "rungs.csv", Rung)
