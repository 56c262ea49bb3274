"""Marked regions can be rewritten any number of times, and the author's text stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflab.errors import ExportRefused
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
def test_what_is_appended_once_is_found_again(text: str, first: str, second: str) -> None:
    try:
        appended = filled(text, {"a": first}, append=True)
    except ExportRefused as error:
        assert "code block" in str(error)  # noqa: PT017  (the text ends within one)
        return
    assert appended.startswith(text)
    again = filled(appended, {"a": second}, append=True)
    assert again.startswith(text)
    assert len(regions(again)) == 1


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
        filled(text, {"a": "new"}, append=True)


def test_missing_marks_and_a_body_with_a_mark_in_it_are_refused() -> None:
    with pytest.raises(ExportRefused, match="there are no marks for 'a'"):
        filled("my text\n", {"a": "new"})
    with pytest.raises(ExportRefused, match="looks like a mark"):
        filled("", {"a": f"x\n{END}"}, append=True)


def test_a_region_edited_by_hand_is_refused_unless_it_may_be_lost() -> None:
    text = filled("", {"a": "one\n"}, append=True)
    edited = text.replace("one", "mine")
    with pytest.raises(ExportRefused, match="edited by hand"):
        filled(edited, {"a": "two\n"})
    assert "two" in filled(edited, {"a": "two\n"}, overwrite=True)
    assert "two" in filled(text.replace("\n", "\r\n"), {"a": "two\n"})


def test_marks_in_a_code_block_are_text() -> None:
    text = f"```\n{BEGIN}mine\n{END}```\n"
    assert regions(text) == []
    assert filled(text, {"a": "new"}, append=True).startswith(text)
