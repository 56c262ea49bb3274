"""What an effect shows: a difference, no difference that matters, or neither yet.

==============  ==================================================================
result          when
==============  ==================================================================
more, less      the 95% interval of the ratio excludes 1, and p, adjusted for the
                claims of the run, is 0.05 at most
same            the 90% interval lies inside the margin (two one-sided 5% tests);
                checked first: an effect may be certain and still too small to matter
not decided     neither; with how many blocks a fresh run would need to decide it
==============  ==================================================================

The number of blocks is a range, for the ends of the 80% interval of the noise. It holds for a fresh
run that decides alone. Adding blocks until a difference shows is another test: it calls identical
treatments different in ``PEEKING`` of cases instead of 5% (``benchmarks/verdict_table.py``). The
intervals of a run with ``blocks = until_decided`` allow for this
(:mod:`~perflab.statistics.interim_analysis`).

Source: D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987 (two one-sided tests); P. Armitage,
C. K. McPherson, B. C. Rowe, J. R. Stat. Soc. A 132, 1969 (repeated looks).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from perflab.analysis.doubts.bound_causes import UNKNOWN
from perflab.analysis.results import Compared
from perflab.statistics.comparison import Effect
from perflab.statistics.families import Corrected
from perflab.statistics.mean_intervals import CONFIDENCE, SMALLEST_SIGNED_RANK
from perflab.statistics.sample_sizes import (
    MOST_BLOCKS,
    blocks_for_equivalence,
    blocks_needed,
    noise_range,
)

MARGIN = 0.03
WITHIN_MARGIN = f"within {MARGIN:.0%}"
# The difference of two shares of failures that does not matter: 0.1 percentage points.
MARGIN_OF_SHARES = 0.001
PEEKING = 0.20
PEEKING_NOTE = (
    "Do not add blocks until you like the result: that raises false alarms from 5% to about "
    f"{PEEKING:.0%} (a look after each of 6 to 30 blocks). Let a fresh run of a fixed number of "
    "blocks decide alone, or use blocks = until_decided."
)
# The first words of the way out of an undecided comparison.
FRESH_RUN = "a fresh run of"
OUT_OF_REACH = -1
NEVER = (OUT_OF_REACH, OUT_OF_REACH)
QUIET_FIRST = "how many blocks would decide it, only the noise of a quiet machine can tell"
UNCERTAIN_VALUES = (
    "more blocks would not decide it: the interval holds what the client or pauses may have added"
)


@dataclass(frozen=True)
class Decision:
    """What a ratio shows, and how many blocks a fresh run needs to decide it.

    ``blocks`` are the fewest and the most blocks that a fresh run is likely to need (0: nothing is
    left to decide, -1: more than anybody measures). ``missing`` says what a difference still lacks
    although its interval excludes 1.
    """

    result: Compared
    blocks: tuple[int, int]
    text: str
    missing: str = ""


def is_within_margin(effect: Effect) -> bool:
    """Return whether the 90% interval of a ratio lies so near 1 that it does not matter."""
    return effect.narrow_low > 1 / (1 + MARGIN) and effect.narrow_high < 1 + MARGIN


def decide(effect: Effect, corrected: Corrected | None = None, way_out: str = UNKNOWN) -> Decision:
    """Decide what a ratio shows, or the bound of one.

    A difference up to ``MARGIN``, either way, does not matter (0.03: 3%); this is tested first, and
    not corrected for other claims. ``corrected`` is the claim's p-value, adjusted for the run's
    claims about the response; without it the claim is alone. ``way_out`` says what would tell more
    where only a bound is known (:mod:`perflab.analysis.doubts.bound_causes`).
    """
    x = np.array(effect.by_block)
    if len(x) < 2:
        text = "fewer than 2 blocks: nothing can be said of the noise"
        return Decision(Compared.NOT_DECIDED, NEVER, text)
    if is_within_margin(effect):
        return Decision(Compared.SAME, (0, 0), f"no difference larger than {MARGIN:.0%}")
    level, missing = 1 - CONFIDENCE, ""
    if effect.low > 1 or effect.high < 1:
        why = f"the {'bound' if effect.bound else 'interval'} excludes 1 (no difference)"
        if corrected is None or corrected.holds:
            return Decision(Compared.MORE if effect.low > 1 else Compared.LESS, (0, 0), why)
        level, missing = corrected.needed_p, f"{why}, but {corrected.text()}"
    if effect.bound:
        text = f"only a bound is known; {way_out}"
        return Decision(Compared.NOT_DECIDED, NEVER, text, missing)
    undecided = _undecided(effect, level, missing)
    if not effect.is_exact and undecided.blocks[1] == _next(x) * effect.blocks_per_unit:
        # The blocks agree: what each may be off by leaves it open, and no block narrows that.
        return Decision(Compared.NOT_DECIDED, NEVER, UNCERTAIN_VALUES, missing)
    return undecided


def of_busy_machine(decision: Decision) -> Decision:
    """Return a decision of a run whose noise tells nothing of that of a quiet machine."""
    if decision.result is not Compared.NOT_DECIDED or decision.blocks[1] == OUT_OF_REACH:
        return decision
    return replace(decision, blocks=NEVER, text=QUIET_FIRST)


def _next(x: np.ndarray) -> int:
    """Return the fewest blocks of a fresh run that tells more than these blocks.

    These did not decide it; below 6 the noise would have to be normal.
    """
    return max(len(x) + 1, SMALLEST_SIGNED_RANK)


def _undecided(effect: Effect, level: float, missing: str) -> Decision:
    """Return how many blocks would decide it if the mean is the one measured.

    Where blocks share a start of the services, a fresh run is taken to have as many for each.
    """
    x = np.array(effect.by_block)
    noise, size, start = float(x.std(ddof=1)), abs(float(x.mean())), _next(x)
    least, most = (_blocks(size, end, level, start) for end in noise_range(noise, len(x)))
    if least == OUT_OF_REACH:
        text = f"more than {MOST_BLOCKS:,} blocks would be needed"
        return Decision(Compared.NOT_DECIDED, (least, most), text, missing)
    many = effect.blocks_per_unit
    least, most = (OUT_OF_REACH if end == OUT_OF_REACH else many * end for end in (least, most))
    text = (
        f"{FRESH_RUN} {_range(least, most)} blocks would decide it, if the difference is "
        f"the one seen ({effect.n_text} so far)"
    )
    return Decision(Compared.NOT_DECIDED, (least, most), text, missing)


def _blocks(effect: float, noise: float, level: float, start: int) -> int:
    """Return the blocks that show a difference, or equivalence, whichever are fewer."""
    bound, counts = math.log1p(MARGIN), [blocks_needed(effect, noise, level, least=start)]
    if effect < bound:
        counts.append(blocks_for_equivalence(effect, noise, bound, least=start))
    reachable = [count for count in counts if count != OUT_OF_REACH]
    return min(reachable, default=OUT_OF_REACH)


def _range(least: int, most: int) -> str:
    if most == OUT_OF_REACH:
        return f"{least:,} to more than {MOST_BLOCKS:,}"
    return f"{least:,} to {most:,}" if most > least else f"{least:,}"
