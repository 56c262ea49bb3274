"""Tables are well-formed Markdown whatever they hold."""

from __future__ import annotations

import re

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from perflab.reports.conversion import to_markdown

CELLS = st.one_of(
    st.text(max_size=20), st.floats(), st.integers(), st.booleans(), st.none(),
    st.lists(st.text(max_size=5), max_size=3),
)  # fmt: skip


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_every_row_has_as_many_cells_as_the_head(rows) -> None:
    table = pd.DataFrame(rows, columns=["a|b", "c"], dtype=object)
    lines = to_markdown(table).removesuffix("\n").split("\n")
    assert len(lines) == len(rows) + 2
    for line in lines:
        unescaped_bars = re.findall(r"(?<!\\)(?:\\\\)*\|", line)
        assert len(unescaped_bars) == 3
        assert line.startswith("| ")
        assert line.endswith(" |")


def test_columns_of_numbers_lean_right_and_a_table_without_rows_says_so() -> None:
    table = pd.DataFrame({"name": ["a"], "value": [1.5]})
    assert to_markdown(table).splitlines()[1] == "| --- | ---: |"
    assert to_markdown(pd.DataFrame(columns=["a"])) == "*(no rows)*\n"
