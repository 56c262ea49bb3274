"""Before a run: can its blocks show a single effect among all that is claimed at once?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from perflab.analysis.methods.comparison import SMALLEST_SIGNED_RANK
from perflab.analysis.methods.family import blocks_for_one
from perflab.recordings import Contrast, Remark


def too_few_blocks(contrasts: Sequence[Contrast], blocks: int) -> list[Remark]:
    """Say where no single effect could be shown, were it ever so large; several could be.

    Below six blocks the test is another, and has no least p-value.
    """
    if blocks < SMALLEST_SIGNED_RANK:
        return []
    tested = [each for each in contrasts if not each.not_testable and not each.set_by_load]
    families = Counter(each.response for each in tested)
    if not families:
        return []
    response, claims = families.most_common(1)[0]
    needed = blocks_for_one(claims)
    if blocks >= needed:
        return []
    text = (
        f"among the {claims} claims about {response} {blocks} blocks can show no single effect, "
        f"be it ever so large; {needed} blocks can"
    )
    return [Remark(code="plan.blocks", text=text)]
