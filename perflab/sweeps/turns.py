"""Whose turn it is where time is short: the next block goes to the cell that needs it most.

Cells with a fixed number of blocks come first, whole, in the order of the file. Cells with
``blocks = until_decided`` are measured block by block. Each gets the blocks before which nothing is
decided; then always that cell gets one whose decision is expected soonest, by its own noise and its
own seconds a block. So the most is decided by any instant, and what is far from a decision does not
keep others from theirs (among jobs whose length is known, the shortest remaining first has the
smallest mean time to the end: L. E. Schrage, Oper. Res. 16, 1968). A run's intervals hold whenever
it stops, so this order makes no error more frequent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perflab.analysis.treatments.outlook import blocks_left
from perflab.errors import RecordingError
from perflab.experiments.experiment import UNTIL_DECIDED
from perflab.numerals import counted
from perflab.paths import runs_dir
from perflab.progress_bar import minutes
from perflab.recordings import Run, blocks_done, list_runs
from perflab.sweeps.cells import Cell
from perflab.sweeps.estimate import estimated, past_runs
from perflab.sweeps.journal import CellState, Journal


@dataclass(frozen=True)
class Turn:
    """The cell that is measured next, until it has so many blocks (None: to its end), and why."""

    cell: Cell
    pause_after: int | None
    text: str


@dataclass(frozen=True)
class Standing:
    """How far a cell is: its blocks, those it is expected to want still, and seconds of each.

    ``seconds`` is NaN where no block was measured yet.
    """

    cell: Cell
    done: int
    left: float
    seconds: float


def next_turn(cells: Sequence[Cell], journal: Journal, left_s: float) -> Turn | None:
    """Return whose turn it is; None where no cell has a block that would end in time.

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
    """Return the turn of the cell that needs a block most, among those whose block would end."""
    fits = [each for each in standings if not each.seconds > left_s]
    begun = [each for each in fits if each.done]
    # First every cell has a chance: one that nobody looked at may be decided with the first look.
    new = [each for each in fits if not each.done]
    if new:
        return _turn(new[0], int(new[0].cell.asked["least_blocks"]), "its first blocks")
    if not begun:
        return None
    first = min(begun, key=lambda each: (each.left * each.seconds, each.seconds))
    least = int(first.cell.asked["least_blocks"])
    if math.isinf(first.left):
        return _turn(first, first.done + 1, "no decision in sight, here or elsewhere")
    why = f"decided with about {counted(round(first.left), 'more block')}"
    told = f"{why}, in {minutes(first.left * first.seconds)}"
    return _turn(first, max(first.done + 1, least), told)


def _turn(standing: Standing, pause_after: int, why: str) -> Turn:
    return Turn(standing.cell, pause_after, f"{standing.cell.label}: {why}")


def _standing(cell: Cell, state: CellState) -> Standing:
    nothing = Standing(cell, 0, math.inf, math.nan)
    if not state.run_id:
        return nothing
    try:
        run = Run(runs_dir() / state.run_id)
        done, left = blocks_done(run), blocks_left(run)
    except RecordingError:
        # The attempt finds out, and measures anew.
        return nothing
    ends = (attempt.ended for attempt in state.attempts if attempt.run_id == state.run_id)
    spent = sum(ended.seconds for ended in ends if ended)
    return Standing(cell, done, left, spent / done if done else math.nan)


def _ends_within(cell: Cell, left_s: float) -> bool:
    """Say whether a whole cell would end in time, by earlier runs like it."""
    seconds = estimated(cell, past_runs(list_runs(runs_dir()))).seconds
    return seconds is None or seconds <= left_s
