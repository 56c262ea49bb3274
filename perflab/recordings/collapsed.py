"""Call chains as text: per line the frames from the outermost on, and how often they were seen.

The format that flame graph tools call collapsed stacks:

main (server.py);run (asyncio/runners.py);send (hub.py) 17
"""

from __future__ import annotations

import pandas as pd

from perflab.errors import RecordingError


def parse_collapsed(text: str) -> pd.DataFrame:
    """Return chain and samples, one row per chain, sorted by chain; equal chains are added up.

    Raises
    ------
    RecordingError
        A line is not ``frames count``; the message gives its number.
    """
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        chain, _, count = line.strip().rpartition(" ")
        # isdigit alone would let other scripts' digits pass.
        if not chain or not (count.isascii() and count.isdigit()):
            raise RecordingError(
                f"line {number} is no collapsed call chain (frames;... count): {line!r}"
            )
        counts[chain] = counts.get(chain, 0) + int(count)
    table = pd.DataFrame(sorted(counts.items()), columns=["chain", "samples"])
    return table.astype({"chain": str, "samples": "int64"})
