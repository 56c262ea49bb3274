"""How likely a few more blocks decide a run with ``blocks = until_decided``, if all is as it seems.

A contrast is decided when its interval has left behind the values that lie between one decision and
another: no effect, the ends of the zone of a published size, the margin of what does not matter. At
a later look of N blocks the interval of n blocks will be narrower by the square root of n / N, and
its centre will have moved: by nothing on average, with a standard deviation of s sqrt(1/n - 1/N),
where s is the noise of a block (normal, and the effect as likely to lie anywhere). So is known how
likely the nearest such value is left behind by then. It is a guess for spending time by, and no
statement about the run: which run gets the next blocks changes nothing of what its intervals hold
(they hold whenever it stops, see :mod:`perflab.analysis.methods.repeated_looks`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from perflab.analysis.methods.comparison import Effect
from perflab.analysis.treatments.decision import MARGIN
from perflab.analysis.treatments.open_claims import undecided_findings
from perflab.analysis.treatments.published import on_scale, published_sign, zone_of
from perflab.recordings import Contrast, Run, UntilDecided, blocks_done


@dataclass(frozen=True)
class Outlook:
    """So many blocks decide everything with this chance (0: in no sight; 1: nothing is open)."""

    blocks: int
    chance: float

    @property
    def price(self) -> float:
        """Return the blocks that a decision costs, on average over cells like this one."""
        return self.blocks / self.chance if self.chance > 0 else math.inf


NOTHING_OPEN = Outlook(0, 1.0)


def outlook_of(run: Run) -> Outlook:
    """Return by which look a run's decision is to be had at the lowest price, and how likely.

    Before the first look nobody knows: its blocks, with a chance of 1.

    Raises
    ------
    ValueError
        The number of its blocks is fixed.
    ResumeRefused
        It is too damaged to be gone on with.
    """
    rule = run.record.until_decided
    if rule is None:
        raise ValueError(f"run {run.run_id} has a fixed number of blocks")
    if rule.ended:
        return NOTHING_OPEN
    done = blocks_done(run)
    if done < rule.least_blocks:
        return Outlook(rule.least_blocks - done, 1.0)
    return cheapest([(each.effect, each.contrast) for each in undecided_findings(run)], rule, done)


def cheapest(
    undecided: Sequence[tuple[Effect | None, Contrast]], rule: UntilDecided, done: int
) -> Outlook:
    """Return the outlook of a run that has so many blocks, by what is undecided in it."""
    if not undecided:
        return NOTHING_OPEN
    found, ahead = [], done
    while ahead < rule.most_blocks:
        ahead = rule.next_look(ahead)
        # The one that is farthest from its decision says when all is decided.
        chances = (chance(effect, contrast, ahead) for effect, contrast in undecided)
        found.append(Outlook(ahead - done, min(chances)))
    return min(found, key=lambda each: each.price, default=Outlook(0, 0.0))


def chance(effect: Effect | None, contrast: Contrast, blocks: int) -> float:
    """Return how likely a contrast is decided once it has so many blocks in all."""
    if effect is None or effect.bound or not math.isfinite(effect.low + effect.high):
        return 0.0
    low, centre, high = (
        on_scale(each, contrast) for each in (effect.low, effect.estimate, effect.high)
    )
    half = (high - low) / 2 * math.sqrt(effect.n / blocks)
    moves = np.std(effect.by_block, ddof=1) * math.sqrt(max(0.0, 1 / effect.n - 1 / blocks))
    beyond = distance(centre, contrast) - half
    if not moves > 0:
        return float(beyond > 0)
    return float(special.ndtr(beyond / moves))


def distance(centre: float, contrast: Contrast) -> float:
    """Return how far an effect lies from where another decision would be taken, on its scale."""
    sign, zone = published_sign(contrast), zone_of(contrast)
    if zone is None:
        # Of what nothing was published either answer decides: a difference, or none that matters.
        same = 0.0 if sign else math.log1p(MARGIN) - abs(centre)
        return max(abs(centre), same)
    ends = min(abs(centre - zone.low), abs(centre - zone.high))
    outside = not zone.low <= centre <= zone.high
    return ends if outside or not sign else min(ends, abs(centre))
