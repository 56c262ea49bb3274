"""Times of the streams that a load measured: until the first chunk, and between chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene
from perflab.instruments.requests import at_least
from perflab.load.chunk_times import OF_STREAMS, ChunkTimes, times_of_chunks
from perflab.load.workload import Scripted, Workload
from perflab.stacks.plan import StackPlan


class Chunks(Instrument):
    """Sums up the streamed answers of a trial; how long they lasted in all, ``Requests`` has."""

    def look(self, scene: Scene) -> Look:  # noqa: ARG002
        """Return the look at one trial."""
        return _Chunks()

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return that nothing is streamed, where that is known before the load."""
        if workload.request.stream is None and not isinstance(workload.arrivals, Scripted):
            yield "chunks: no answer is streamed; say in its Request stream='sse' or 'ndjson'"


class _Chunks(Look):
    def observe(self, load: Load) -> Observation:
        """Return columns alone."""
        found = times_of_chunks(load.result)
        return Observation(chunk_columns(found) if found is not None else {})


def chunk_columns(found: ChunkTimes) -> dict[str, Any]:
    """Return the times of streams, with the rules of :func:`~.requests.request_columns`.

    ``first_chunk_*_ms``, ``chunk_gap_*_ms``, ``chunks_per_s`` and ``chunks_at_once_share``: see
    :class:`~perflab.load.chunk_times.ChunkTimes`.
    """
    times = {"first_chunk": found.first, "chunk_gap": found.gaps}
    numbers = {
        f"{what}_{name}_ms": number
        for what, each in times.items()
        for name, number in each.numbers(OF_STREAMS).items()
        if name != "max"
    }
    return {
        **{name: number.comparable for name, number in numbers.items()},
        **at_least(numbers),
        **{
            f"{name.removesuffix('_ms')}_client_ms": number.client_ms
            for name, number in numbers.items()
        },
        "chunks_per_s": found.per_s,
        "chunks_at_once_share": found.at_once_share,
    }
