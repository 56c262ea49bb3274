"""Whose turn it is: by the chance of a decision for its time, and by the time that is left."""

from __future__ import annotations

import math

from perflab.analysis.methods.repeated_looks import planned
from perflab.analysis.treatments.outlook import Outlook
from perflab.sweeps.cells import Cell
from perflab.sweeps.turns import Standing, chosen

RULE = planned(8, 20)


def standing(
    name: str, done: int, blocks: int = 6, chance: float = 0.5, seconds: float = 10.0
) -> Standing:
    asked = {"blocks": "until_decided", "least_blocks": 8, "most_blocks": 20}
    cell = Cell(name, name, {}, asked, (), 1, 20)
    sight = Outlook(blocks, chance)
    return Standing(cell, done, RULE.next_look(done), sight, seconds if done else math.nan)


def test_every_cell_has_its_first_blocks_before_any_has_more() -> None:
    turn = chosen([standing("a", 8, 1, 1.0), standing("b", 0), standing("c", 0)], 1e6)
    assert turn is not None
    assert (turn.cell.id, turn.pause_after) == ("b", 8)


def test_the_next_blocks_go_where_a_decision_costs_the_least_time_for_its_chance() -> None:
    cells = [
        standing("slow", 8, 6, 0.9, 40), standing("unlikely", 8, 6, 0.1, 10),
        standing("likely", 14, 6, 0.6, 11), standing("late", 8, 12, 0.9, 9),
    ]  # fmt: skip
    turn = chosen(cells, 1e6)
    assert turn is not None
    assert (turn.cell.id, turn.pause_after) == ("likely", 20)
    assert "a chance of 60% decided with 6 more blocks, in 1:06" in turn.text


def test_a_cell_without_a_decision_in_sight_keeps_no_other_from_its_own() -> None:
    hopeless = standing("a", 8, 6, 0.0, 1)
    turn = chosen([hopeless, standing("b", 8, 12, 0.02, 60)], 1e6)
    assert turn is not None
    assert turn.cell.id == "b"
    alone = chosen([hopeless], 1e6)
    assert alone is not None
    assert alone.pause_after == 14
    assert "no decision in sight" in alone.text


def test_a_block_that_was_broken_off_before_the_first_look_is_made_up_for_first() -> None:
    turn = chosen([standing("a", 3, 5, 1.0)], 1e6)
    assert turn is not None
    assert turn.pause_after == 8


def test_no_cell_goes_on_that_would_not_be_looked_at_in_time() -> None:
    slow, quick = standing("a", 8, 6, 0.9, 20), standing("b", 14, 6, 0.1, 15)
    turn = chosen([slow, quick], 100)
    assert turn is not None
    assert turn.cell.id == "b"
    assert chosen([slow, quick], 80) is None
