"""What ``perf script`` prints, folded into call chains.

Per sample a line with the name of the thread, then a line per frame, the innermost first, then an
empty line (perf-script(1), fields comm, ip, sym and dso):

server
        5651c0a7d1a9 parse(char const*) (/srv/server)
        ffffffff9a4d2b10 tcp_sendmsg ([kernel.kallsyms])
        0 [unknown] ([unknown])
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import pandas as pd

UNKNOWN = "[unknown]"
DELETED = " (deleted)"
_FRAME = re.compile(r"\s+[0-9a-f]+ (?P<rest>.*)")


def fold(text: str) -> pd.DataFrame:
    """Return chain and samples, one row per call chain, sorted by chain.

    Frames are joined by semicolons from the outermost on, written ``function (file)`` as py-spy's
    are; those of the kernel are ``function (kernel)``. Samples without any frame are left out.
    """
    counts = Counter(";".join(reversed(frames)) for frames in _samples(text.splitlines()))
    table = pd.DataFrame(sorted(counts.items()), columns=["chain", "samples"])
    return table.astype({"chain": str, "samples": "int64"})


def _samples(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the frames of every sample that has any, the innermost first."""
    frames: list[str] = []
    for line in [*lines, ""]:
        found = _FRAME.fullmatch(line)
        if found:
            frames.append(_frame(found["rest"].strip()))
        elif frames:
            yield frames
            frames = []


def _frame(rest: str) -> str:
    """Return ``function (file)`` of ``function (/path/of/file)``."""
    symbol, _, file = rest.removesuffix(")").removesuffix(DELETED).rpartition(" (")
    if file.startswith(("[kernel", "[guest.kernel")):
        file = "kernel"
    # A semicolon parts frames, and a name may hold one (a lambda's, some languages').
    return f"{symbol or UNKNOWN} ({file.rpartition('/')[2]})".replace(";", ":")


def unknown_share(chains: pd.DataFrame) -> float:
    """Return the share of samples with a function that has no name; 0 for no samples."""
    whole = int(chains["samples"].sum())
    nameless = chains["chain"].str.contains(UNKNOWN, regex=False)
    return float(chains.loc[nameless, "samples"].sum()) / whole if whole else 0.0
