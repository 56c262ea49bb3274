"""Marked regions can be rewritten and the author's text stays; tables are well-formed Markdown."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perflab.errors import ExportRefused
from perflab.reports.cells import cell, to_markdown
from perflab.reports.regions import filled, regions

BEGIN, END = "<!-- perflab:begin a -->\n", "<!-- perflab:end -->\n"
# Pieces of marks and other special characters; no whole marks.
PIECES = ["\n", "\r\n", "<!-- ", "perflab", " -->", "# x\n", "\ufeff", "\u2028", "é"]


def texts(*more: str) -> st.SearchStrategy[str]:
    """Return texts of any letters and of the special pieces."""
    pieces = st.one_of(st.sampled_from([*PIECES, *more]), st.text(max_size=5))
    return st.lists(pieces, max_size=12).map("".join)


TEXTS, WITH_FENCES = texts(), texts("~~~\n", "```\n")
BODIES = st.lists(st.sampled_from(["one\n", "two\r\n", "\n", "| a |\n", "é"]), max_size=6).map(
    "".join
)


def outside(text: str) -> list[str]:
    """Return the lines outside the region, with a bar in its place."""
    (region,) = regions(text)
    lines = text.split("\n")
    return [*lines[: region.first], "|", *lines[region.last + 1 :]]


@given(TEXTS, TEXTS, st.lists(BODIES, min_size=1, max_size=4))
@pytest.mark.promise
def test_the_authors_text_stays_byte_for_byte_however_often_it_is_exported(
    before: str, after: str, bodies: list[str]
) -> None:
    before = before + "\n" if before else before
    text = f"{before}{BEGIN}{END}{after}"
    for body in bodies:
        text = filled(text, {"a": body})
        assert text.startswith(before)
        assert text.endswith(after)
        assert outside(text) == [*before.split("\n")[:-1], "|", *after.split("\n")]
    assert filled(text, {"a": bodies[-1]}) == text


@given(WITH_FENCES, BODIES, BODIES)
def test_what_is_put_at_the_end_is_found_again(text: str, first: str, second: str) -> None:
    try:
        appended = filled(text, {"a": first})
    except ExportRefused as error:
        assert "code block" in str(error)  # noqa: PT017  (the text ends within one)
        return
    again = filled(appended, {"a": second})
    assert with_words(outside(again)) == with_words(text.split("\n"))


def with_words(lines: list[str]) -> list[str]:
    """Return the lines that say something."""
    return [line.rstrip("\r") for line in lines if line.strip() not in ("", "|")]


@pytest.mark.parametrize(
    "layout",
    [
        "One long line. And its end.\n\n|a|b|\n|:-|-|\n|1.5|-2|\n\n* x\n* _y_\n",
        "One long line.\nAnd its end.\n\n| a   | b |\n| --- | - |\n| 1.5 | \\-2 |\n\n- x\n- *y*\n",
    ],
)
def test_a_region_that_a_formatter_laid_out_again_is_not_edited(layout: str) -> None:
    body = "One long\nline. And its end.\n\n| a | b |\n|---|---|\n| 1.5 | -2 |\n\n- x\n- *y*\n"
    text = filled("", {"a": body})
    assert "two" in filled(text.replace(body, layout), {"a": "two"})
    assert "two" in filled(text.replace(body, layout).replace("\n", "\r\n"), {"a": "two"})
    for mine in (layout.replace("1.5", "15"), layout.replace("-2", "2"), layout + "mine\n"):
        with pytest.raises(ExportRefused, match="edited by hand"):
            filled(text.replace(body, mine), {"a": "two"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BEGIN, "does not end"),
        (END, "does not begin"),
        (BEGIN + BEGIN.replace(" a ", " b ") + END, "another begins"),
        ((BEGIN + END) * 2, "a second time"),
        ("<!-- perflab:begin -->\n" + END, "cannot be read"),
        ("<!-- perflab:begin a\n" + END, "cannot be read"),
        ("<!-- perflab:ende -->\n", "cannot be read"),
    ],
)
def test_damaged_nested_and_double_marks_are_refused(text: str, words: str) -> None:
    with pytest.raises(ExportRefused, match=words):
        filled(text, {"a": "new"})


def test_a_body_with_a_mark_in_it_is_refused() -> None:
    with pytest.raises(ExportRefused, match="looks like a mark"):
        filled("", {"a": f"x\n{END}"})


@pytest.mark.promise
def test_a_region_edited_by_hand_is_refused_unless_it_may_be_lost() -> None:
    text = filled("", {"a": "one\n"})
    edited = text.replace("one", "mine")
    with pytest.raises(ExportRefused, match="edited by hand"):
        filled(edited, {"a": "two\n"})
    assert "two" in filled(edited, {"a": "two\n"}, overwrite=True)
    assert "two" in filled(text.replace("\n", "\r\n"), {"a": "two\n"})


def test_marks_in_a_code_block_are_text() -> None:
    text = f"# Here\n```\n{BEGIN}mine\n# Here\n{END}```\n"
    assert regions(text) == []
    assert filled(text, {"a": "new"}).startswith(text)


CELLS = st.one_of(
    st.text(max_size=20), st.floats(), st.integers(), st.booleans(), st.none(),
    st.lists(st.text(max_size=5), max_size=3),
)  # fmt: skip


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
@example(rows=[(None, 1.795e308)])
def test_every_row_has_as_many_cells_as_the_head(rows) -> None:
    table = pd.DataFrame(rows, columns=["a|b", "c"], dtype=object)
    lines = to_markdown(table).removesuffix("\n").split("\n")
    assert len(lines) == len(rows) + 2
    for line in lines:
        unescaped_bars = re.findall(r"(?<!\\)(?:\\\\)*\|", line)
        assert len(unescaped_bars) == 3
        assert line.startswith("| ")
        assert line.endswith(" |")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("as @anna said in #12", "as `@anna` said in `#12`"),
        ("GET /@anna/items#12", "GET /@anna/items#12"),
        ("anna@example.org", "anna@example.org"),
        ("`@anna`", "`@anna`"),
        ("pay\u200bment", "pay\\\\u200bment"),
        ("naïve 日本 🚀", "naïve 日本 🚀"),
    ],
)
def test_a_name_from_outside_links_to_nobody_and_hides_nothing(text: str, shown: str) -> None:
    assert cell(text) == shown


def test_columns_of_numbers_lean_right_and_a_table_without_rows_says_so() -> None:
    table = pd.DataFrame({"name": ["a"], "value": [1.5]})
    assert to_markdown(table).splitlines()[1] == "| --- | ---: |"
    assert to_markdown(pd.DataFrame(columns=["a"])) == "*(no rows)*\n"
