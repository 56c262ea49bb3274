"""JSON values are compared down to the single value."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from perflab.recordings.sameness import Difference, differences

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)


@given(JSON, JSON)
def test_values_differ_both_ways_or_not_at_all(one: object, other: object) -> None:
    assert list(differences(one, copy.deepcopy(one))) == []
    forward, backward = list(differences(one, other)), list(differences(other, one))
    assert {(item.before, item.after) for item in map(_plain, forward)} == {
        (item.after, item.before) for item in map(_plain, backward)
    }


def _plain(difference: Difference) -> Difference:
    return Difference(difference.place, repr(difference.before), repr(difference.after))


def test_members_of_lists_are_called_by_their_name() -> None:
    one = {"nodes": [{"name": "link", "delay": 0}, 5]}
    other = {"nodes": [{"name": "link", "delay": 2}, 6, 7]}
    assert list(map(str, differences(one, other))) == [
        "nodes.link.delay (0 -> 2)",
        "nodes.1 (5 -> 6)",
        "nodes.2 (nothing -> 7)",
    ]
