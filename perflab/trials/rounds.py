"""Slices that take turns: which treatment has which window of a block, in random order.

Where slices are biased: what a treatment has not finished when its window closes is paused with it,
and meets the requests of its next turn (``carried_over`` of
:func:`perflab.load.by_window.window_table` tells how much). Each turn begins on caches that the
others have used: ``settle_ms`` is discarded for that, and what lasts longer makes all treatments
slower, the more the larger their working set. What a service does in the background (garbage
collection by time, checkpoints) is paused too, or, of a service that all share, falls into
whoever's turn it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perflab.errors import ParameterError
from perflab.load.windows import Window, Windows

FEWEST_TREATMENTS = 2


@dataclass(frozen=True)
class Turn:
    """One window: which treatment is under load in it, and when (s from the planned start)."""

    round: int
    treatment: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Rounds:
    """Rounds in which every treatment has a window, one after the other.

    Parameters
    ----------
    treatments : tuple of str
        At least two.
    rounds : int
        How many there are.
    slice_ms : float
        How long each window is; its first ``settle_ms`` are discarded.
    gap_ms : float
        Between two windows: what is under way ends, one service is paused and the next resumed.
    seed : int
        Decides the order within each round; every round is permuted on its own, so that its order
        does not depend on how many there are.

    Raises
    ------
    ParameterError
        There are too few treatments, or nothing of a window would count.
    """

    treatments: tuple[str, ...]
    rounds: int
    slice_ms: float = 300.0
    settle_ms: float = 60.0
    gap_ms: float = 40.0
    seed: int = 0

    def __post_init__(self) -> None:
        problems = []
        count = len(set(self.treatments))
        if count != len(self.treatments) or count < FEWEST_TREATMENTS:
            names = ", ".join(self.treatments) or "none"
            problems.append(f"treatments are {names}: give two at least, each with its own name")
        if self.rounds < 1:
            problems.append(f"rounds is {self.rounds}: there must be one")
        if not 0 <= self.settle_ms < self.slice_ms:
            problems.append(
                f"settle_ms is {self.settle_ms:g}: what is discarded must be shorter than a slice, "
                f"slice_ms {self.slice_ms:g}"
            )
        if not self.gap_ms > 0:
            problems.append(f"gap_ms is {self.gap_ms:g}: services take turns in the gaps")
        if problems:
            raise ParameterError("rounds", problems)

    def order(self) -> list[list[str]]:
        """Return, per round, the treatments in random order."""
        return [
            [
                self.treatments[place]
                for place in np.random.default_rng((self.seed, number)).permutation(
                    len(self.treatments)
                )
            ]
            for number in range(self.rounds)
        ]

    def turns(self) -> list[Turn]:
        """Return every window in the order of time; a gap comes before each."""
        found: list[Turn] = []
        step_s, gap_s = (self.slice_ms + self.gap_ms) / 1e3, self.gap_ms / 1e3
        for number, order in enumerate(self.order()):
            for name in order:
                start_s = len(found) * step_s + gap_s
                found.append(Turn(number, name, start_s, start_s + self.slice_ms / 1e3))
        return found

    def windows(self, treatment: str) -> Windows:
        """Return the windows of a treatment's load: one per round, in their order."""
        spans = tuple(
            Window(start_s=turn.start_s, end_s=turn.end_s)
            for turn in self.turns()
            if turn.treatment == treatment
        )
        return Windows(spans=spans, settle_ms=self.settle_ms)

    @property
    def length_s(self) -> float:
        """Return how long all rounds take, in seconds, with a gap at the end."""
        return self.turns()[-1].end_s + self.gap_ms / 1e3
