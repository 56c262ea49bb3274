"""No value lies outside its interval, in any table of any experiment."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from tests.golden.outputs import EXPECTED

# A value with its interval in a text, such as "1.23 [1.04, 1.37]".
NUMBER = r"([-+]?\d[\d,.]*)[a-z%]*"
IN_WORDS = re.compile(rf"{NUMBER} \[{NUMBER}, {NUMBER}\]")


def triples(table: pd.DataFrame) -> Iterator[tuple[str, str, str]]:
    """Yield the names of values, and of the low and high ends of their intervals."""
    if {"measured", "95% low", "95% high"} <= set(table):
        yield "measured", "95% low", "95% high"
    for low in table.columns:
        name = low.removesuffix("low")
        high = f"{name}high"
        value = name.rstrip("_") or "value"
        if low.endswith("low") and {value, high} <= set(table):
            yield value, low, high


def number(text: str) -> float:
    return float(text.rstrip(".,").replace(",", ""))


@pytest.mark.parametrize("folder", sorted(EXPECTED.iterdir()), ids=lambda folder: folder.name)
def test_no_value_lies_outside_its_interval(folder: Path) -> None:
    checked = 0
    for file in sorted([*folder.rglob("figure-*.csv"), *folder.rglob("findings.csv")]):
        # A long table ends with a line of sums, which has one field more.
        lines = [line for line in file.read_text().splitlines() if not line.startswith("all ")]
        table = pd.read_csv(io.StringIO("\n".join(lines)))
        for names in triples(table):
            numbers = table[list(names)].apply(pd.to_numeric, errors="coerce").dropna()
            value, low, high = (numbers[name] for name in names)
            # Tables have nine digits.
            outside = (value < low - 1e-8 * abs(low)) | (value > high + 1e-8 * abs(high))
            assert not outside.any(), (file.name, numbers[outside])
            checked += len(numbers)
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        for words in IN_WORDS.findall(file.read_text()):
            value, low, high = map(number, words)
            assert low <= value <= high, (file.name, words)
            checked += 1
    assert checked
