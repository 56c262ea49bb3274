"""Collapsed stacks: per line the frames from the outermost on, and how often they were seen.

main (server.py);run (asyncio/runners.py);send (hub.py) 17
"""

from __future__ import annotations

import pandas as pd

from perflab.errors import RecordingError


def parse_collapsed(text: str) -> pd.DataFrame:
    """Return stack and samples, one row per stack, sorted by stack; equal stacks are added up.

    Raises
    ------
    RecordingError
        A line is not ``frames count``; the message gives its number.
    """
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        stack, _, count = line.strip().rpartition(" ")
        # isdigit alone would let other scripts' digits pass.
        if not stack or not (count.isascii() and count.isdigit()):
            raise RecordingError(
                f"line {number} is no collapsed stack (frames;... count): {line!r}"
            )
        counts[stack] = counts.get(stack, 0) + int(count)
    table = pd.DataFrame(sorted(counts.items()), columns=["stack", "samples"])
    return table.astype({"stack": str, "samples": "int64"})
