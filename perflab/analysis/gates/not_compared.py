"""Whether a pair of variants was compared at all, and if not, why.

The share of failures alone is no comparison: where every request of both sides failed, it is equal.
It is one where it differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from perflab.analysis.evaluation import Finding
from perflab.recordings.responses import FAILURES, split_request
from perflab.statistics.comparison import USUAL_P


def is_compared(findings: Mapping[str, Finding]) -> bool:
    """Return whether some response that the load does not set has an effect, by response."""
    return any(
        finding.effect is not None
        and not finding.contrast.set_by_load
        and (split_request(response)[0] != FAILURES or finding.p_adjusted <= USUAL_P)
        for response, finding in findings.items()
    )


def why_not(findings: Mapping[str, Finding]) -> str:
    """Return the most frequent reason why nothing was compared; empty if none is known."""
    reasons = Counter(
        text.partition("; ")[0]
        for finding in findings.values()
        if not finding.contrast.set_by_load and (text := finding.absent or finding.verdict.reason)
    )
    return max(reasons, key=reasons.__getitem__, default="")
