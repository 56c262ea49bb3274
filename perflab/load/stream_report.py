"""What a load showed of its streams, as the summary of a load has it."""

from __future__ import annotations

from typing import Any

from perflab.load.chunk_times import ChunkTimes
from perflab.load.remarks import of_client_time
from perflab.load.times import known, shown
from perflab.recordings.reasons import Remark

OF_STREAMS = (50, 95, 99)
MANY_AT_ONCE = 0.05


def streams(found: ChunkTimes | None) -> dict[str, Any]:
    """Return the numbers of a load's streams for its summary; none where nothing was streamed.

    ``first_chunk_ms`` is from the planned instant to the first chunk, ``chunk_gap_ms`` from each
    chunk to the next, with bounds and the client's own time as response times have them.
    """
    if found is None:
        return {}
    return {
        **shown("first_chunk", found.first.numbers()),
        **shown("chunk_gap", found.gaps.numbers()),
        "chunks": found.chunks,
        "chunks_per_s": known(found.per_s),
        "chunks_at_once_share": known(found.at_once_share),
    }


def remarks(found: ChunkTimes | None) -> list[Remark]:
    """Return what is told beside these numbers."""
    if found is None:
        return []
    numbers = {
        f"{what} {name}": number
        for what, times in (("first chunk", found.first), ("gap", found.gaps))
        for name, number in times.numbers(OF_STREAMS).items()
        if name != "max"
    }
    told = of_client_time(numbers)
    if found.at_once_share > MANY_AT_ONCE:
        text = f"{found.at_once_share:.0%} of the gaps between chunks are 0: one read brought both"
        text += " chunks, and what the server took between them cannot be seen"
        told.append(Remark(code="stream.at_once", text=text))
    return told
