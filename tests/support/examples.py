"""How many examples the properties of parsers are tried with.

Of ``n`` examples one shows, with a probability of 95%, what one of ``n / 3`` shows. Whoever changes
a parser tries more: ``PERFLAB_EXAMPLES=10`` makes it ten times as many.
"""

from __future__ import annotations

import os

TIMES = int(os.environ.get("PERFLAB_EXAMPLES", "1"))


def examples(count: int) -> int:
    """Return ``count``, or the multiple of it that was asked for."""
    return count * TIMES
