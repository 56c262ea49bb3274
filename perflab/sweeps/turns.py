"""Whose turn it is where time is short: the next blocks go to the cell that needs them most.

Cells with a fixed number of blocks come first, whole, in the order of the file. Cells with
``blocks = until_decided`` are measured from look to look. Each gets the blocks before its first;
then always that cell goes on whose decision costs the least time for its chance of being had, by
its own noise and its own seconds a block. So the most is decided by any instant, and what is far
from a decision does not keep others from theirs (of jobs that may or may not succeed, those with
the most chance for their time come first: J. C. Gittins, J. R. Stat. Soc. B 41, 1979). A run's
intervals hold whenever it stops, so this order makes no error more frequent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perflab.analysis.treatments.outlook import Outlook, outlook_of
from perflab.errors import RecordingError
from perflab.experiments.experiment import UNTIL_DECIDED
from perflab.numerals import counted
from perflab.paths import runs_dir
from perflab.progress import minutes
from perflab.recordings import Run, blocks_done, list_runs
from perflab.sweeps.cells import Cell
from perflab.sweeps.estimate import estimated, past_runs
from perflab.sweeps.journal import CellState, Journal

# Below such a chance there is none to speak of.
IN_SIGHT = 0.01


@dataclass(frozen=True)
class Turn:
    """The cell that is measured next, until it has so many blocks (None: to its end), and why."""

    cell: Cell
    pause_after: int | None
    text: str


@dataclass(frozen=True)
class Standing:
    """How far a cell is: its blocks, when it is looked at next, and its outlook.

    ``seconds`` are those of a block, NaN where none was measured yet.
    """

    cell: Cell
    done: int
    next_look: int
    outlook: Outlook
    seconds: float

    @property
    def look_s(self) -> float:
        """Return the seconds until it is looked at next."""
        return (self.next_look - self.done) * self.seconds

    @property
    def price_s(self) -> float:
        """Return the seconds that a decision costs; infinite where none is in sight."""
        return self.outlook.price * self.seconds if self.outlook.chance > 0 else math.inf


def next_turn(cells: Sequence[Cell], journal: Journal, left_s: float) -> Turn | None:
    """Return whose turn it is; None where no cell would be looked at in time.

    Parameters
    ----------
    cells : sequence of Cell
        Those that are not finished, in the order of the file.
    left_s : float
        For how long may be measured. What nobody knows the length of is begun as long as there is
        any time.
    """
    if left_s <= 0:
        return None
    for cell in cells:
        if cell.asked["blocks"] != UNTIL_DECIDED and _ends_within(cell, left_s):
            return Turn(cell, None, f"{cell.label}: {counted(int(cell.asked['blocks']), 'block')}")
    open_ones = [cell for cell in cells if cell.asked["blocks"] == UNTIL_DECIDED]
    return chosen((_standing(cell, journal.cell(cell.id)) for cell in open_ones), left_s)


def chosen(standings: Iterable[Standing], left_s: float) -> Turn | None:
    """Return the turn of the cell that needs blocks most, among those looked at in time."""
    fits = [each for each in standings if not each.look_s > left_s]
    begun = [each for each in fits if each.done]
    # First every cell has a chance: one that nobody looked at may be decided with the first look.
    new = [each for each in fits if not each.done]
    if new:
        return _turn(new[0], "its first blocks")
    if not begun:
        return None
    first = min(begun, key=lambda each: (each.price_s, each.look_s))
    sight = first.outlook
    if sight.chance < IN_SIGHT:
        return _turn(first, "no decision in sight, here or elsewhere")
    more = f"{counted(sight.blocks, 'more block')}, in {minutes(sight.blocks * first.seconds)}"
    return _turn(first, f"with a chance of {sight.chance:.0%} decided with {more}")


def _turn(standing: Standing, why: str) -> Turn:
    return Turn(standing.cell, standing.next_look, f"{standing.cell.label}: {why}")


def _standing(cell: Cell, state: CellState) -> Standing:
    least = int(cell.asked["least_blocks"])
    nothing = Standing(cell, 0, least, Outlook(least, 1.0), math.nan)
    if not state.run_id:
        return nothing
    try:
        run = Run(runs_dir() / state.run_id)
        done, ahead = blocks_done(run), outlook_of(run)
    except RecordingError:
        # The attempt finds out, and measures anew.
        return nothing
    ends = (attempt.ended for attempt in state.attempts if attempt.run_id == state.run_id)
    spent = sum(ended.seconds for ended in ends if ended)
    rule = run.record.until_decided
    next_look = rule.next_look(done) if rule else least
    return Standing(cell, done, next_look, ahead, spent / done if done else math.nan)


def _ends_within(cell: Cell, left_s: float) -> bool:
    """Say whether a whole cell would end in time, by earlier runs like it."""
    seconds = estimated(cell, past_runs(list_runs(runs_dir()))).seconds
    return seconds is None or seconds <= left_s
