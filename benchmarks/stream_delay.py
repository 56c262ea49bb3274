"""How late the generator is to note the chunks of streams, by the sender's own record.

The stand-in for a model keeps when it gave each token away (CLOCK_MONOTONIC, before the transport
has it); a client has the instant at which it saw the chunk. The difference is what kernel, client
and its reading of the clock take together. The stand-in runs on one core, the client on another, in
turns with peers whose clients do the same work: the lean client, aiohttp reading lines, and httpx
with httpx-sse. A peer that is not installed is left out.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import secrets
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import bench
from perflab.host.own_folders import own_folder
from perflab.load.workers.generator import Generator
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.paths import environments_dir
from perflab.stacks import environments
from perflab.stacks.commands import Work
from perflab.stacks.spec import load_service

SERVICE, PATH = "llm_upstream", "/v1/chat/completions"
ASKED = [{"role": "user", "content": "why is it so?"}]
BODY = {"model": "stand-in", "stream": True, "messages": ASKED}
# What the lab wants of itself at 10,000 chunks a second, in ms.
WANTED = {50: 0.2, 99: 2.0}
JOIN_S = 1.0
Seen = list[np.ndarray]


@dataclass(frozen=True)
class Upstream:
    """The stand-in under way: its address, and the key that it asks for."""

    url: str
    secret: str

    @property
    def headers(self) -> dict[str, str]:
        """Return what goes with each request."""
        return {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}

    def sent_ns(self, last: int) -> Seen:
        """Return when each token of the latest streams was given away, by the streams' begin."""
        with urllib.request.urlopen(f"{self.url}/streams") as answer:
            told = json.load(answer)
        streams = sorted(told["streams"][-last:], key=lambda each: each["begun_ns"])
        return [np.array(each["sent_ns"], dtype=np.int64) for each in streams]


@contextmanager
def upstream(streams: int, tokens: int, rate: float) -> Iterator[Upstream]:
    """Serve on the servers' core, with the packages that the service pins."""
    spec = load_service(SERVICE)
    own = environments.environment(spec, own_folder(environments_dir()))
    environments.ensure(spec, own.folder.parent, Work(lambda text: print(text, file=sys.stderr)))
    port, secret = bench.free_port(), secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.touch(0o600)
        key.write_text(secret)
        settings = {
            "host": "127.0.0.1", "port": port, "secret_file": key, "tokens": tokens,
            "token_rate": rate, "kept_streams": streams, "first_token_ms": 1000 * JOIN_S,
        }  # fmt: skip
        given = {f"LLM_UPSTREAM_{name.upper()}": str(value) for name, value in settings.items()}
        words = bench.on_core(bench.cores()[0], own.python, "-m", f"{SERVICE}.application")
        place = {"PYTHONPATH": os.pathsep.join(map(str, spec.sources))}
        with bench.serving(words, port, env=os.environ | own.variables() | place | given):
            yield Upstream(f"http://127.0.0.1:{port}", secret)


def perflab(made: Generator, at: Upstream, streams: int) -> Seen:
    """Read streams with the lean client, each by a user of its own who joins after the last."""
    request = Request(
        method="POST", path=PATH, headers=at.headers, body=json.dumps(BODY), stream="sse",
        end_marker="[DONE]",
    )  # fmt: skip
    # The time to join is shorter than the first answer: nobody asks twice.
    arrivals = ClosedLoop(users=streams, requests=streams, ramp_s=JOIN_S)
    result = made.run(Workload(request=request, arrivals=arrivals, timeout_s=120), at.url)
    if (result.requests["error"] != "").any():
        sys.exit("stream_delay: streams failed")
    chunks = result.stream_chunks
    own = chunks[~chunks["is_end"]]
    by_stream = own.groupby(["planned_ns", "request"], sort=True)["at_ns"]
    found = [times.to_numpy() for _, times in by_stream]
    result.discard()
    return found


async def joined(streams: int, read: Callable[[], Awaitable[list[int]]]) -> Seen:
    """Let readers join one after the other; return what each saw, in that order."""

    async def reader(number: int) -> np.ndarray:
        await asyncio.sleep(number * JOIN_S / streams)
        return np.array(await read(), dtype=np.int64)

    return list(await asyncio.gather(*map(reader, range(streams))))


async def aiohttp(at: Upstream, streams: int) -> Seen:
    """Read lines as aiohttp gives them."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=at.headers) as session:

        async def read() -> list[int]:
            async with session.post(at.url + PATH, json=BODY) as answer:
                lines = answer.content
                return [time.monotonic_ns() async for line in lines if line.startswith(b"data: {")]

        return await joined(streams, read)


async def httpx_sse(at: Upstream, streams: int) -> Seen:
    """Read events as httpx-sse gives them."""
    import httpx
    from httpx_sse import aconnect_sse

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, headers=at.headers, timeout=120) as client:

        async def read() -> list[int]:
            async with aconnect_sse(client, "POST", at.url + PATH, json=BODY) as source:
                events = source.aiter_sse()
                return [time.monotonic_ns() async for event in events if event.data != "[DONE]"]

        return await joined(streams, read)


PEERS = {"aiohttp": aiohttp, "httpx_sse": httpx_sse}


def delays_ms(sent: Seen, seen: Seen) -> np.ndarray:
    """Return how long after its sending each token was seen; ends where they are not the same."""
    # The last chunk of an answer says why it ends; it is none of the tokens.
    cut = [there[: len(here)] for here, there in zip(sent, seen, strict=True)]
    if [len(each) for each in cut] != [len(each) for each in sent]:
        sys.exit("stream_delay: a client saw other tokens than were sent")
    return (np.concatenate(cut) - np.concatenate(sent)) / 1e6


def row(name: str, sent: Seen, seen: Seen) -> dict[str, object]:
    """Return what one client was late by."""
    found, every = delays_ms(sent, seen), np.concatenate(sent)
    shares = {share: float(np.percentile(found, share)) for share in WANTED}
    held = all(shares[share] <= most for share, most in WANTED.items())
    return {
        "client": name, "chunks/s": f"{len(every) / np.ptp(every) * 1e9:,.0f}",
        **{f"p{share} ms": f"{value:.3f}" for share, value in shares.items()},
        "longest": f"{found.max():.3f}", "wanted": "held" if held else "missed",
    }  # fmt: skip


def main() -> None:
    """Measure and print the table."""
    given = bench.options(
        __doc__,
        streams=100,
        rate=(100.0, "tokens a second of each stream"),
        seconds=10.0,
        rounds=3,
    )
    names = ["perflab", *(name for name in PEERS if importlib.util.find_spec(name))]
    rows = []
    with (
        bench.generator() as made,
        upstream(given.streams, round(given.rate * given.seconds), given.rate) as at,
    ):
        # Peers run in this process; the lean client has one of its own on the same core.
        os.sched_setaffinity(0, {bench.cores()[1]})
        for name in bench.turns(names, given.rounds):
            if name == "perflab":
                seen = perflab(made, at, given.streams)
            else:
                seen = asyncio.run(PEERS[name](at, given.streams))
            rows.append(row(name, at.sent_ns(given.streams), seen))
    bench.show(sorted(rows, key=lambda each: str(each["client"])))


if __name__ == "__main__":
    main()
