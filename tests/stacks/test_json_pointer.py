"""JSON Pointers as RFC 6901 defines them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflab.stacks.json_pointer import find

DOCUMENT = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, "~1": 3, "deep": {"rows": 7}}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/m~0n", 8),
        ("/~01", 3),
        ("/deep/rows", 7),
    ],
)
def test_the_pointers_of_the_standard_lead_where_it_says(pointer: str, value: object) -> None:
    assert find(DOCUMENT, pointer) == value


@pytest.mark.parametrize(
    "pointer", ["/nothing", "/foo/2", "/foo/01", "/foo/-", "/foo/²", "/foo/0/x"]
)
def test_a_pointer_that_leads_nowhere_is_an_error(pointer: str) -> None:
    with pytest.raises(KeyError):
        find(DOCUMENT, pointer)


names = st.text("~/01a \n", max_size=3)
values = st.recursive(
    st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=10,
)


def leaves(value: Any, at: str = "") -> list[tuple[str, Any]]:
    steps: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        steps = [(key.replace("~", "~0").replace("/", "~1"), item) for key, item in value.items()]
    if isinstance(value, list):
        steps = [(str(number), item) for number, item in enumerate(value)]
    return [(at, value), *(pair for step, item in steps for pair in leaves(item, f"{at}/{step}"))]


@given(values)
def test_every_value_of_a_document_is_found_by_its_pointer(document: Any) -> None:
    for pointer, value in leaves(document):
        assert find(document, pointer) == value
