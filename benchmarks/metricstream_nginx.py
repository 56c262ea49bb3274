"""What a request costs metricstream, beside nginx answering a constant in the same run.

One server at a time on one core, the lean client on another, keep-alive connections, as fast as it
goes. Servers and requests take turns in random order in every round, and the ratio is of one round,
because the machine drifts between them. CPU is the server's own, user and system, from the kernel's
accounts of its processes. nginx answers all from its configuration: it parses no body and stores
nothing, which is more than metricstream can leave out of a POST.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import bench
import nginx

from perflab.host.own_folders import own_folder
from perflab.load.generator import Generator
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.paths import compiled_dir
from perflab.sampling.meters import ProcessTable, ProcessTreeMeter
from perflab.stacks import compiled
from perflab.stacks.patience import never
from perflab.stacks.spec import load_service

SAMPLES = [{"name": f"metric{number}", "value": number / 4} for number in range(5)]
REQUESTS = {
    "GET of a constant": Request(path="/health", expect_status=200),
    "POST of 5 samples": Request(
        method="POST", path="/metrics", expect_status=202,
        headers={"Content-Type": "application/json"},
        body=json.dumps({"client": "a", "metrics": SAMPLES}),
    ),
}  # fmt: skip
# The header is metricstream's, as a constant: the client shall have the same work with both.
LOCATIONS = """
  location = /health {
    add_header Server-Timing "taken;dur=0.0123" always;
    return 200 '{"status": "ok"}';
  }
  location = /metrics {
    add_header Server-Timing "taken;dur=0.0123, parse;dur=0.0012, lock;dur=0.0001, store;dur=0.0004"
      always;
    return 202 '{"accepted": 5}';
  }
"""
METRICSTREAM, NGINX = "metricstream", "nginx"
# The settings of service.toml that make it cheapest; the others have their defaults.
BEST = {"threading": "epoll", "threads": 1, "keep_alive": "on", "store": "per_client"}


@contextmanager
def metricstream(core: int) -> Iterator[tuple[str, int]]:
    """Serve on one core, compiled as the lab compiles it; yields address and process id."""
    spec = load_service("metricstream")
    program = compiled.ensure(spec, own_folder(compiled_dir()), _tell, never)
    port = bench.free_port()
    settings = {"host": "127.0.0.1", "port": port, **spec.resolve(BEST)}
    words = [f"{name}={value}" for name, value in settings.items()]
    server = subprocess.Popen(["taskset", "-c", str(core), str(program), *words])
    try:
        bench.wait_for(port, server)
        yield f"http://127.0.0.1:{port}", server.pid
    finally:
        server.terminate()
        server.wait()


def requests_per_core_s(
    made: Generator, request: Request, users: int, seconds: float, url: str, pid: int
) -> float:
    """Send a load; return answers per second of the server's CPU. Every one must be as expected."""
    work = Workload(request=request, arrivals=ClosedLoop(users=users, duration_s=seconds))
    before_ns = cpu_ns(pid)
    result = made.run(work, url)
    used_ns = cpu_ns(pid) - before_ns
    failed = sum(int((rows["error"] != 0).sum()) for rows in result.rows)
    answered = sum(map(len, result.rows)) - failed
    result.discard()
    if failed or not answered:
        sys.exit(f"{failed} of {answered + failed} requests to {url}{request.path} failed")
    return answered / (used_ns / 1e9)


def cpu_ns(pid: int) -> int:
    """Return the CPU time of a process and its children."""
    reading = ProcessTreeMeter(pid).read(ProcessTable())
    if reading is None:
        sys.exit("a server ended")
    return reading.cpu_ns


def table(seen: dict[tuple[str, str], list[float]]) -> str:
    """Return medians, and the ratio to nginx paired by round, as text."""
    lines = [f"{'requests per s of CPU':22}{METRICSTREAM:>14}{NGINX:>9}{'median (min to max)':>24}"]
    for name in REQUESTS:
        own, other = seen[METRICSTREAM, name], seen[NGINX, name]
        ratios = [mine / theirs for mine, theirs in zip(own, other, strict=True)]
        shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        medians = f"{statistics.median(own):>14.0f}{statistics.median(other):>9.0f}"
        lines.append(f"{name:22}{medians}{shown:>24}")
    return "\n".join(lines)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--users", type=int, default=50)
    given = parser.parse_args()
    core = bench.cores()[0]
    with (
        nginx.serving(core, LOCATIONS) as peer, metricstream(core) as own, bench.generator() as made
    ):  # fmt: skip
        ways = {
            (server, name): partial(
                requests_per_core_s, made, request, given.users, given.seconds, *place
            )
            for server, place in ((METRICSTREAM, own), (NGINX, peer))
            for name, request in REQUESTS.items()
        }
        seen: dict[tuple[str, str], list[float]] = {way: [] for way in ways}
        for number in range(given.rounds):
            for way in random.sample(list(ways), len(ways)):
                seen[way].append(ways[way]())
            _tell(f"round {number + 1} of {given.rounds}")
    print(table(seen))


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
