"""Collapsed call chains as text: read whole, or refused with the line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflab.errors import RecordingError
from perflab.recordings.collapsed import parse_collapsed

names = st.text(
    st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp"], blacklist_characters=";"),
    min_size=1,
).filter(lambda name: name == name.strip())


def test_equal_chains_are_added_up_and_blanks_in_frames_are_kept() -> None:
    text = "main (a.py);run (<frozen b c>) 3\n\nmain (a.py) 2\nmain (a.py);run (<frozen b c>) 4\n"
    table = parse_collapsed(text)
    assert dict(zip(table["chain"], table["samples"], strict=True)) == {
        "main (a.py)": 2,
        "main (a.py);run (<frozen b c>)": 7,
    }


@given(
    st.dictionaries(st.lists(names, min_size=1, max_size=4).map(";".join), st.integers(0, 10**9))
)
def test_what_is_written_is_read_back(chains: dict[str, int]) -> None:
    table = parse_collapsed("\n".join(f"{chain} {count}" for chain, count in chains.items()))
    assert dict(zip(table["chain"], table["samples"], strict=True)) == chains


@pytest.mark.parametrize("line", ["main", "main x", "main -3", " 5", "main ٣", "main 1.5"])
def test_a_line_that_is_no_chain_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(RecordingError, match="line 2"):
        parse_collapsed(f"main 1\n{line}\n")


def test_an_empty_profile_has_no_chains() -> None:
    assert parse_collapsed("").empty
