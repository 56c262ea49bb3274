"""How late the generator is to note the chunks of streams, by the sender's own record.

The stand-in for a model keeps when it gave each token away (CLOCK_MONOTONIC, before the transport
has it); a client has the instant at which it saw the chunk. The difference is what kernel, client
and its reading of the clock take together. The stand-in runs on one core, the client on another, in
turns with peers whose clients do the same work: the lean client, aiohttp reading lines, and httpx
with httpx-sse. A peer that is not installed is left out, and a sentence says so.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import bench
import numpy as np

from perflab.host.own_folders import own_folder
from perflab.load.generator import Generator
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.paths import environments_dir
from perflab.stacks import environments
from perflab.stacks.patience import never
from perflab.stacks.spec import load_service

SERVICE = "llm_upstream"
PATH = "/v1/chat/completions"
BODY = {
    "model": "stand-in",
    "stream": True,
    "messages": [{"role": "user", "content": "why is it so?"}],
}
# What the lab wants of itself at 10,000 chunks a second, in ms.
WANTED = {50: 0.2, 99: 2.0}
JOIN_S = 1.0


@dataclass(frozen=True)
class Upstream:
    """The stand-in under way: its address, and the key that it asks for."""

    url: str
    secret: str

    @property
    def headers(self) -> dict[str, str]:
        """Return what goes with each request."""
        return {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json"}

    def sent_ns(self, last: int) -> list[np.ndarray]:
        """Return when each token of the latest streams was given away, by the streams' begin."""
        with urllib.request.urlopen(f"{self.url}/streams?last={last}") as answer:
            told = json.load(answer)
        streams = sorted(told["streams"], key=lambda each: each["begun_ns"])
        return [np.array(each["sent_ns"], dtype=np.int64) for each in streams]


@contextmanager
def upstream(streams: int, tokens: int, rate: float) -> Iterator[Upstream]:
    """Serve on the servers' core, with the packages that the service pins."""
    spec = load_service(SERVICE)
    own = environments.environment(spec, own_folder(environments_dir()))
    environments.ensure(spec, own.folder.parent, lambda text: print(text, file=sys.stderr), never)
    port, secret = bench.free_port(), secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.write_text(secret)
        key.chmod(0o600)
        settings = {
            "host": "127.0.0.1", "port": port, "secret_file": key, "tokens": tokens,
            "token_rate": rate, "kept_streams": streams, "first_token_ms": 1000 * JOIN_S,
        }  # fmt: skip
        given = {f"LLM_UPSTREAM_{name.upper()}": str(value) for name, value in settings.items()}
        command = [
            "taskset",
            "-c",
            str(bench.cores()[0]),
            str(own.python),
            "-m",
            f"{SERVICE}.server",
        ]
        server = subprocess.Popen(
            command, env={**os.environ, **own.variables(), "PYTHONPATH": str(spec.folder), **given}
        )
        try:
            bench.wait_for(port, server)
            yield Upstream(f"http://127.0.0.1:{port}", secret)
        finally:
            server.terminate()
            server.wait()


Seen = list[np.ndarray]
Way = Callable[[Upstream, int], Seen]


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


async def _joined(streams: int, read: Callable[[], object]) -> Seen:
    """Let readers join one after the other; return what each saw, in that order."""

    async def reader(number: int) -> np.ndarray:
        await asyncio.sleep(number * JOIN_S / streams)
        return np.array(await read(), dtype=np.int64)  # type: ignore[misc]

    return list(await asyncio.gather(*map(reader, range(streams))))


def aiohttp_lines(at: Upstream, streams: int) -> Seen:
    """Read lines as aiohttp gives them."""
    import aiohttp

    async def whole() -> Seen:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, headers=at.headers) as session:

            async def read() -> list[int]:
                async with session.post(at.url + PATH, json=BODY) as answer:
                    return [
                        time.monotonic_ns()
                        async for line in answer.content
                        if line.startswith(b"data: {")
                    ]

            return await _joined(streams, read)

    return asyncio.run(whole())


def httpx_sse(at: Upstream, streams: int) -> Seen:
    """Read events as httpx-sse gives them."""
    import httpx
    from httpx_sse import aconnect_sse

    async def whole() -> Seen:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(limits=limits, headers=at.headers, timeout=120) as client:

            async def read() -> list[int]:
                async with aconnect_sse(client, "POST", at.url + PATH, json=BODY) as source:
                    return [
                        time.monotonic_ns()
                        async for event in source.aiter_sse()
                        if event.data != "[DONE]"
                    ]

            return await _joined(streams, read)

    return asyncio.run(whole())


PEERS: dict[str, Way] = {"aiohttp": aiohttp_lines, "httpx_sse": httpx_sse}


def delays_ms(sent: Seen, seen: Seen) -> np.ndarray:
    """Return how long after its sending each token was seen; ends where they are not the same."""
    # The last chunk of an answer says why it ends; it is none of the tokens.
    cut = [there[: len(here)] for here, there in zip(sent, seen, strict=True)]
    if [len(each) for each in cut] != [len(each) for each in sent]:
        sys.exit("stream_delay: a client saw other tokens than were sent")
    return (np.concatenate(cut) - np.concatenate(sent)) / 1e6


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--rate", type=float, default=100.0, help="tokens a second of each stream")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    tokens = round(given.rate * given.seconds)
    ways: dict[str, Way] = {}
    for package, way in PEERS.items():
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed and left out (pip install {package})")
        else:
            ways[package] = way
    print(f"{given.streams} streams of {given.rate:g} tokens/s, ms from sending to seeing")
    print(f"{'client':10}{'round':>6}{'chunks/s':>10}{'p50':>9}{'p99':>9}{'longest':>9}  wanted")
    with bench.generator() as made, upstream(given.streams, tokens, given.rate) as at:
        ways = {"perflab": partial(perflab, made), **ways}
        # Peers run in this process; the lean client has one of its own on the same core.
        os.sched_setaffinity(0, {bench.cores()[1]})
        for number in range(given.rounds):
            for name, way in ways.items():
                seen = way(at, given.streams)
                print(_row(name, number, at.sent_ns(given.streams), seen), flush=True)


def _row(name: str, number: int, sent: Seen, seen: Seen) -> str:
    found = delays_ms(sent, seen)
    every = np.concatenate(sent)
    per_s = len(every) / (int(every.max()) - int(every.min())) * 1e9
    shares = [float(np.percentile(found, share)) for share in WANTED]
    held = all(value <= most for value, most in zip(shares, WANTED.values(), strict=True))
    words = "".join(f"{value:9.3f}" for value in (*shares, float(found.max())))
    return f"{name:10}{number:>6}{per_s:>10,.0f}{words}  {'held' if held else 'missed'}"


if __name__ == "__main__":
    main()
