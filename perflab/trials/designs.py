"""How a block is measured: one trial after the other, or in slices that take turns.

Whole trials pair what is seconds apart. Slices pair what is less than a second apart: all
treatments of a block are resident, and a trial's load is sent in windows only. A trial stays what
it is, with a row of its own; blocks are compared as ever.

Where slices are biased: what a treatment has not finished when its window closes is paused with it,
and meets the requests of its next turn (``carried_over`` of
:func:`perflab.load.checks.times.window_table` tells how much). Each turn begins on caches that the
others have used: ``settle_ms`` is discarded for that, and what lasts longer makes all treatments
slower, the more the larger their working set. What a service does in the background (garbage
collection by time, checkpoints) is paused too, or, of a service that all share, falls into
whoever's turn it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from perflab.errors import ExperimentError
from perflab.load.workload import ClosedLoop, OpenLoop, Workload
from perflab.load.workload.windows import Window, Windows
from perflab.recordings.schema import DesignRecord

Kind = Literal["auto", "trials", "slices"]
SETTLED_SHARE = GAP_SHARE = 0.2
# To pause a process and resume another takes a few ms.
LEAST_GAP_MS = 10.0
LONGEST_MS = 60_000.0
# Services and a load worker of every treatment are there at once.
FEWEST_TREATMENTS, MOST_TREATMENTS = 2, 8


def random_orders(names: Sequence[str], seed: int, count: int) -> list[list[str]]:
    """Return ``names`` in as many random orders; the seed and its number decide each."""
    return [
        [names[place] for place in np.random.default_rng((seed, number)).permutation(len(names))]
        for number in range(count)
    ]


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

    A window lasts ``slice_ms``, the first ``settle_ms`` of which are discarded. In the gap before
    each what is under way ends, one service is paused and the next resumed. The seed decides the
    order within each round; every round is permuted on its own, so that its order does not depend
    on how many there are.
    """

    treatments: tuple[str, ...]
    rounds: int
    slice_ms: float = 300.0
    settle_ms: float = 60.0
    gap_ms: float = 40.0
    seed: int = 0

    def order(self) -> list[list[str]]:
        """Return, per round, the treatments in random order."""
        return random_orders(self.treatments, self.seed, self.rounds)

    def turns(self) -> list[Turn]:
        """Return every window in the order of time; a gap comes before each."""
        turns: list[Turn] = []
        step_s, gap_s = (self.slice_ms + self.gap_ms) / 1e3, self.gap_ms / 1e3
        for number, order in enumerate(self.order()):
            for name in order:
                start_s = len(turns) * step_s + gap_s
                turns.append(Turn(number, name, start_s, start_s + self.slice_ms / 1e3))
        return turns

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


class Design(BaseModel):
    """How the trials of a block share its time.

    ``slice_ms`` is how long a window is, the first fifth of which is not counted; in the gap
    between two windows what is under way ends, and services are paused and resumed. ``auto``, and
    slices of no length, are settled when services run (:mod:`perflab.trials.choosing`); ``why``
    then says by what.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind = "trials"
    slice_ms: float | None = Field(default=None, ge=20, le=LONGEST_MS)
    why: str = ""

    @property
    def is_settled(self) -> bool:
        """Whether it says all that a block needs."""
        return self.kind == "trials" or (self.kind != "auto" and self.slice_ms is not None)

    def recorded(self) -> DesignRecord | None:
        """Return what the record of a run says of it; None while it is not settled."""
        return DesignRecord(**self.model_dump()) if self.is_settled else None

    def text(self) -> str:
        """Return it in words: ``slices of 50 ms (why)``."""
        length = f" of {self.slice_ms:g} ms" if self.shares_time and self.slice_ms else ""
        return f"{self.kind}{length}" + (f" ({self.why})" if self.why else "")

    @property
    def length_ms(self) -> float:
        """Return the length of a slice."""
        if self.slice_ms is None:
            raise ExperimentError(f"a design of {self.kind} has slices of no length yet")
        return self.slice_ms

    @property
    def shares_time(self) -> bool:
        """Whether the trials of a block run in the same stretch of time."""
        return self.kind == "slices"

    @property
    def settle_ms(self) -> float:
        """Return what of each window is not counted."""
        return self.length_ms * SETTLED_SHARE

    @property
    def gap_ms(self) -> float:
        """Return how long nobody sends between two windows."""
        return max(LEAST_GAP_MS, self.length_ms * GAP_SHARE)

    def rounds(self, loads: Mapping[str, Workload], seed: int, block: int) -> Rounds:
        """Return the rounds of one block: those of the warm-up, then as many as the loads need.

        ``loads`` are by treatment; no other block has its order.
        """
        warm, counted = self._numbers(loads)
        return Rounds(
            tuple(loads), warm + counted, self.length_ms, self.settle_ms, self.gap_ms,
            seed=(seed * 1_000_003 + block) % 2**63,
        )  # fmt: skip

    def workload(self, treatment: str, rounds: Rounds, loads: Mapping[str, Workload]) -> Workload:
        """Return a treatment's load cut into its windows; what counts is as long as it was."""
        warm, _ = self._numbers(loads)
        arrivals = loads[treatment].arrivals
        windows, length_s = rounds.windows(treatment), rounds.length_s
        begun = [turn.start_s for turn in rounds.turns() if turn.round == warm]
        # In the middle of the gap before the first round that counts.
        warmup_s = max(0.0, min(begun) - self.gap_ms / 2e3) if warm else 0.0
        words: dict[str, Any] = {"warmup_s": warmup_s}
        if isinstance(arrivals, ClosedLoop):
            words |= {"duration_s": length_s - warmup_s, "max_duration_s": length_s + 1.0}
        else:
            assert isinstance(arrivals, OpenLoop)
            stage = arrivals.stages[0].model_copy(update={"duration_s": length_s})
            words["stages"] = [stage.model_dump()]
        cut = type(arrivals).model_validate({**arrivals.model_dump(), **words, "windows": windows})
        return Workload.model_validate({**loads[treatment].model_dump(), "arrivals": cut})

    def _numbers(self, loads: Mapping[str, Workload]) -> tuple[int, int]:
        """Return how many rounds warm up, and how many count."""
        lengths = [lengths_s(each) for each in loads.values()]
        slice_s, counted_s = self.length_ms / 1e3, (self.length_ms - self.settle_ms) / 1e3
        warm = math.ceil(max(warmup for warmup, _ in lengths) / slice_s - 1e-9)
        return warm, max(1, math.ceil(max(length for _, length in lengths) / counted_s - 1e-9))


def lengths_s(workload: Workload) -> tuple[float, float]:
    """Return how long a load warms up, and for how long it counts, in seconds."""
    arrivals = workload.arrivals
    assert isinstance(arrivals, ClosedLoop | OpenLoop)
    if isinstance(arrivals, ClosedLoop):
        return arrivals.warmup_s, arrivals.duration_s
    return arrivals.warmup_s, arrivals.duration_s - arrivals.warmup_s


def not_cut(workload: Workload) -> str:
    """Return why a load cannot be sent in windows; nothing where it can."""
    arrivals = workload.arrivals
    if not isinstance(arrivals, ClosedLoop | OpenLoop):
        return "a load of bursts or scripted users cannot be cut into windows"
    if workload.request.stream:
        return "streams go on after a window's end"
    if workload.stop.failures:
        return "a load that ends by a rule cannot share its time"
    if isinstance(arrivals, ClosedLoop) and (arrivals.requests or arrivals.warmup_requests):
        return "a load of so many requests has no length; give it seconds"
    if isinstance(arrivals, ClosedLoop):
        if arrivals.ramp_s or arrivals.stages:
            return "a load whose users come and go is not the same in all windows"
        return ""
    if len(arrivals.stages) > 1 or arrivals.stages[0].to_rate is not None:
        return "a load whose rate changes is not the same in all windows"
    return ""
