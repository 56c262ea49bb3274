"""How a block is measured: one trial after the other, or in slices that take turns.

In slices the services of all treatments of a block run, and a trial's load is sent in windows only.
``docs/explanation/designs.md`` tells what slices gain, and their biases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perflab.load.workload import ClosedLoop, OpenLoop, Workload
from perflab.load.workload.arrivals import Window, Windows
from perflab.recordings.design import Design

SETTLED_SHARE = GAP_SHARE = 0.2
# Pausing a process and resuming another takes a few ms.
LEAST_GAP_MS = 10.0
# Services and a load worker of every treatment run at once.
FEWEST_TREATMENTS, MOST_TREATMENTS = 2, 8


def random_orders(names: Sequence[str], seed: int, count: int) -> list[list[str]]:
    """Return ``count`` random orders of ``names``; the seed and its number decide each."""
    return [
        [names[place] for place in np.random.default_rng((seed, number)).permutation(len(names))]
        for number in range(count)
    ]


def mirrored_orders(names: Sequence[str], seed: int, count: int) -> list[list[str]]:
    """Return ``count`` orders of ``names``: one at random, then the same one backwards, and so on.

    The mean position of every name in a pair of orders is the same. So a drift that is steady over
    a pair adds nothing to a comparison, and with few orders it cannot pass for a difference. The
    last order stands alone where ``count`` is odd. The first orders do not depend on ``count``.
    """
    drawn = random_orders(names, seed, (count + 1) // 2)
    return [either for order in drawn for either in (order, order[::-1])][:count]


@dataclass(frozen=True)
class Turn:
    """One window: the treatment under load, and its begin and end (s from the planned start)."""

    round: int
    treatment: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Rounds:
    """Rounds in which every treatment has a window, one after the other; ``warm`` are not counted.

    A window lasts ``slice_ms``; the first ``settle_ms`` are discarded. In the gap before each
    window requests in flight end, and a service that would disturb others is paused or resumed.
    """

    treatments: tuple[str, ...]
    rounds: int
    slice_ms: float = 300.0
    seed: int = 0
    warm: int = 0

    @property
    def settle_ms(self) -> float:
        """Return the length of the part of each window that is not counted."""
        return self.slice_ms * SETTLED_SHARE

    @property
    def gap_ms(self) -> float:
        """Return the time between two windows, in which no load is sent."""
        return max(LEAST_GAP_MS, self.slice_ms * GAP_SHARE)

    def turns(self) -> list[Turn]:
        """Return every window in the order of time; a gap comes before each window.

        The order is random in each round and not mirrored from round to round. A block has so many
        rounds that a drift cannot favour a treatment, and mirrored rounds would give every second
        window of a treatment to services that have not been paused since the one before.
        """
        turns: list[Turn] = []
        step_s, gap_s = (self.slice_ms + self.gap_ms) / 1e3, self.gap_ms / 1e3
        for number, order in enumerate(random_orders(self.treatments, self.seed, self.rounds)):
            for name in order:
                start_s = len(turns) * step_s + gap_s
                turns.append(Turn(number, name, start_s, start_s + self.slice_ms / 1e3))
        return turns

    @classmethod
    def of(cls, design: Design, loads: Mapping[str, Workload], seed: int, block: int) -> Rounds:
        """Return the rounds of one block: those of the warm-up, then as many as the loads need.

        ``loads`` are by treatment. Each block has its own random order. The design has a length.
        """
        assert design.slice_ms is not None
        warmups_s, counted_s = zip(*map(lengths_s, loads.values()), strict=True)
        slice_s = design.slice_ms / 1e3
        warm = math.ceil(max(warmups_s) / slice_s - 1e-9)
        counted = math.ceil(max(counted_s) / (slice_s * (1 - SETTLED_SHARE)) - 1e-9)
        seed_of_block = (seed * 1_000_003 + block) % 2**63
        return cls(tuple(loads), warm + max(1, counted), design.slice_ms, seed_of_block, warm)

    def windows(self, treatment: str) -> Windows:
        """Return the windows of a treatment's load: one per round, in their order."""
        spans = tuple(
            Window(start_s=turn.start_s, end_s=turn.end_s)
            for turn in self.turns()
            if turn.treatment == treatment
        )
        return Windows(spans=spans, settle_ms=self.settle_ms)

    def workload(self, treatment: str, whole: Workload) -> Workload:
        """Return a treatment's load cut into its windows; the counted time stays as long."""
        arrivals, turns = whole.arrivals, self.turns()
        length_s = turns[-1].end_s + self.gap_ms / 1e3
        # The warm-up ends in the middle of the gap before the first round that counts.
        begins_s = [turn.start_s for turn in turns if turn.round == self.warm]
        warmup_s = max(0.0, min(begins_s) - self.gap_ms / 2e3) if self.warm else 0.0
        words: dict[str, Any] = {"warmup_s": warmup_s, "windows": self.windows(treatment)}
        if isinstance(arrivals, ClosedLoop):
            words |= {"duration_s": length_s - warmup_s, "max_duration_s": length_s + 1.0}
        else:
            assert isinstance(arrivals, OpenLoop)
            stage = arrivals.stages[0].model_copy(update={"duration_s": length_s})
            words["stages"] = [stage.model_dump()]
        cut = type(arrivals).model_validate({**arrivals.model_dump(), **words})
        return Workload.model_validate({**whole.model_dump(), "arrivals": cut})


def lengths_s(workload: Workload) -> tuple[float, float]:
    """Return the lengths of a load's warm-up and of its counted part, in seconds."""
    arrivals = workload.arrivals
    assert isinstance(arrivals, ClosedLoop | OpenLoop)
    return arrivals.warmup_s, arrivals.counted_s


def not_cut(workload: Workload) -> str:
    """Return why a load cannot be sent in windows; an empty string where it can."""
    arrivals = workload.arrivals
    if not isinstance(arrivals, ClosedLoop | OpenLoop):
        return "a load of bursts or scripted users, who keep state, cannot be cut into slices"
    if workload.request.stream:
        return "streams go on after the end of a slice"
    if workload.stop.failures:
        return "failures may end this load at any time (stop rules)"
    if isinstance(arrivals, OpenLoop):
        changes = len(arrivals.stages) > 1 or arrivals.stages[0].to_rate is not None
        return "the rate changes, so slices would not have the same load" if changes else ""
    if arrivals.requests or arrivals.warmup_requests:
        return "a load that is counted in requests has no length; give duration_s instead"
    return "users come and go, so slices would not have the same load" if arrivals.ramp_s else ""
