"""Whose turn it is: by what is left to be decided, and by the time that is left."""

from __future__ import annotations

import math

from perflab.sweeps.cells import Cell
from perflab.sweeps.turns import Standing, chosen


def standing(name: str, done: int, left: float, seconds: float = 10.0) -> Standing:
    asked = {"blocks": "until_decided", "least_blocks": 8, "most_blocks": 20}
    cell = Cell(name, name, {}, asked, (), 1, 20)
    return Standing(cell, done, left, seconds if done else math.nan)


def test_every_cell_has_its_first_blocks_before_any_has_more() -> None:
    turn = chosen([standing("a", 8, 1), standing("b", 0, math.inf), standing("c", 0, 8)], 1e6)
    assert turn is not None
    assert (turn.cell.id, turn.pause_after) == ("b", 8)


def test_the_next_block_goes_where_a_decision_is_nearest_in_time() -> None:
    turn = chosen([standing("a", 9, 5, 8), standing("b", 8, 2, 30), standing("c", 12, 3, 9)], 1e6)
    assert turn is not None
    assert (turn.cell.id, turn.pause_after) == ("c", 13)
    assert "about 3 more blocks, in 0:27" in turn.text


def test_a_cell_without_a_decision_in_sight_keeps_no_other_from_its_own() -> None:
    hopeless = standing("a", 8, math.inf, 1)
    turn = chosen([hopeless, standing("b", 8, 12, 60)], 1e6)
    assert turn is not None
    assert turn.cell.id == "b"
    alone = chosen([hopeless], 1e6)
    assert alone is not None
    assert alone.pause_after == 9


def test_a_block_that_was_broken_off_before_the_first_look_is_made_up_for_first() -> None:
    turn = chosen([standing("a", 3, 5)], 1e6)
    assert turn is not None
    assert turn.pause_after == 8


def test_no_block_is_begun_that_would_not_end_in_time() -> None:
    slow, quick = standing("a", 8, 1, 60), standing("b", 8, 9, 20)
    turn = chosen([slow, quick], 30)
    assert turn is not None
    assert turn.cell.id == "b"
    assert chosen([slow, quick], 15) is None
