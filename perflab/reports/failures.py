"""What a comparison of variants says of requests that failed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from perflab.analysis.decision import MARGIN
from perflab.analysis.evaluation import Finding
from perflab.analysis.results import Compared
from perflab.recordings.responses import FAILURES
from perflab.statistics.in_words import number, to_safe_side
from perflab.statistics.shares import BlocksOfShares
from perflab.statistics.two_samples import Rate

PERCENT = 100.0


def is_open(finding: Finding, findings: Mapping[str, Finding]) -> bool:
    """Return whether failed requests leave a ratio open, so that no more blocks would decide it.

    ``findings`` are all of the pair, by response.
    """
    effect, decision = finding.effect, finding.decision
    if effect is None or decision is None or decision.result is not Compared.NOT_DECIDED:
        return False
    blocks = effect.blocks
    if _none_failed(findings.get(FAILURES)) or blocks is None or effect.bound:
        return False
    # Ends so far apart do not fit into the margin, however many blocks there are.
    return float(np.median(blocks.high - blocks.low)) > 2 * math.log1p(MARGIN)


def _none_failed(finding: Finding | None) -> bool:
    shares = finding.effect.blocks if finding and finding.effect else None
    return isinstance(shares, BlocksOfShares) and shares.none_failed


def caveats(finding: Finding, findings: Mapping[str, Finding]) -> Iterator[str]:
    """Yield how many requests failed of each side, or that failures leave a time open.

    That none failed is said of all requests together, and not again of those of each name.
    """
    blocks = finding.effect.blocks if finding.effect else None
    if isinstance(blocks, BlocksOfShares):
        if _none_failed(findings.get(FAILURES)) and finding.contrast.response != FAILURES:
            return
        sides = zip(
            (finding.contrast.numerator, finding.contrast.denominator),
            (blocks.new, blocks.old),
            strict=True,
        )
        parts = [
            f"{rate.hits:,} of {rate.n:,} requests of {'/'.join(side.values())} failed "
            f"({_end(rate)})"
            for side, rate in sides
        ]
        yield f"{', '.join(parts)}; exact 95% intervals, as if failures were independent"
    elif is_open(finding, findings):
        yield (
            "what failed may have taken no time or its whole time-out, and both ends count: more "
            "blocks do not tell more, a shorter time-out (--timeout) may"
        )


def _end(rate: Rate) -> str:
    """Return how many requests may fail, or must where all did: the end that says something."""
    low, high = (PERCENT * end for end in rate.ends())
    if rate.hits == rate.n:
        return f"at least {number(to_safe_side(low, 'at least'))}% do"
    return f"up to {number(to_safe_side(high, 'at most'))}% may"
