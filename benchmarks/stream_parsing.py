"""What it costs to tell the events of a stream apart: CPU per event, against peers.

One process, no sockets: the same bytes in pieces as a client reads them, with so many events in
each. Server-sent events against httpx-sse (whose decoder also builds an object of each event) and
lines of JSON against aiohttp's line reading. Ways take turns in random order; ratios to perflab are
paired by round. A peer that is not installed is left out, and a sentence says so.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from perflab.load.events import ServerSentEvents
from perflab.load.json_lines import JsonLines

TOKEN = b'{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":" word"}}]}'
EVENT = b"data: " + TOKEN + b"\n\n"
LINE = TOKEN + b"\n"
Way = Callable[[Sequence[bytes]], int]


def sse(pieces: Sequence[bytes]) -> int:
    """Tell events apart as perflab does."""
    events = ServerSentEvents("[DONE]")
    return sum(len(events.feed(piece)) for piece in pieces)


def ndjson(pieces: Sequence[bytes]) -> int:
    """Tell lines apart as perflab does."""
    lines = JsonLines('"done":true')
    return sum(len(lines.feed(piece)) for piece in pieces)


def httpx_sse(pieces: Sequence[bytes]) -> int:
    """Read events as httpx-sse does, from a response of httpx."""
    import httpx
    from httpx_sse import EventSource

    class Body(httpx.SyncByteStream):
        def __iter__(self):  # type: ignore[no-untyped-def]
            return iter(pieces)

    headers = {"Content-Type": "text/event-stream"}
    return sum(
        1 for _ in EventSource(httpx.Response(200, headers=headers, stream=Body())).iter_sse()
    )


def aiohttp_lines(pieces: Sequence[bytes]) -> int:
    """Read lines as aiohttp does, each piece fed as its protocol would."""
    from aiohttp.base_protocol import BaseProtocol
    from aiohttp.streams import StreamReader

    async def read() -> int:
        loop = asyncio.get_running_loop()
        reader = StreamReader(BaseProtocol(loop), 1 << 30, loop=loop)
        count = 0
        for piece in pieces:
            reader.feed_data(piece)
            for _ in range(piece.count(b"\n")):
                count += bool(await reader.readline())
        return count

    return asyncio.run(read())


# Per format: an event, perflab's way, and the peers by the package that each needs.
FORMATS: dict[str, tuple[bytes, Way, dict[str, Way]]] = {
    "sse": (EVENT, sse, {"httpx_sse": httpx_sse}),
    "ndjson": (LINE, ndjson, {"aiohttp": aiohttp_lines}),
}


def cost_us(way: Way, pieces: Sequence[bytes], events: int) -> float:
    """Return the CPU per event of one pass, in us; every way must find all events."""
    began = time.process_time()
    found = way(pieces)
    used_s = time.process_time() - began
    if found != events:
        sys.exit(f"stream_parsing: {found} of {events} events were found")
    return used_s / events * 1e6


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--events", type=int, default=20_000)
    given = parser.parse_args()
    print(f"{'format':8}{'per read':>9}  {'way':12}{'CPU us/event':>13}{'against perflab':>26}")
    for name, (event, own, peers) in FORMATS.items():
        ways = {"perflab": own}
        for package, way in peers.items():
            if importlib.util.find_spec(package) is None:
                print(f"{package} is not installed and left out (pip install {package})")
            else:
                ways[package] = way
        for per_read in (1, 10):
            reads = given.events // per_read
            pieces = [event * per_read] * reads
            for way in ways.values():
                # Once uncounted: a first pass also imports.
                way(pieces)
            seen: dict[str, list[float]] = {each: [] for each in ways}
            for _ in range(given.rounds):
                for each in random.sample(list(ways), len(ways)):
                    seen[each].append(cost_us(ways[each], pieces, reads * per_read))
            for each, values in seen.items():
                ratios = [one / other for one, other in zip(values, seen["perflab"], strict=True)]
                shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
                cost = statistics.median(values)
                print(f"{name:8}{per_read:>9}  {each:12}{cost:>13.2f}{shown:>26}")


if __name__ == "__main__":
    main()
