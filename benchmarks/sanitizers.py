"""metricstream under sanitizers and a load of many clients: how many requests, how many reports.

Once with AddressSanitizer and UndefinedBehaviorSanitizer, once with ThreadSanitizer, each way to
share the work among threads meets each store and each keep-alive. Users post batches of many
clients while counts are asked for and all is reset; then the server is told to end, which it must
do with status 0 and without a word of a sanitizer. Answers 503 are a full queue's, and counted by
themselves. The status is 1 where a server does not end so.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import bench

from perflab.host.own_folders import own_folder
from perflab.load.generator import Generator
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.paths import compiled_dir
from perflab.stacks import compiled
from perflab.stacks.patience import never
from perflab.stacks.spec import ServiceSpec, load_service

SANITIZERS = {
    "address": ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O1"),
    "thread": ("-fsanitize=thread", "-O1"),
}
THREADINGS = ("thread", "producer_consumer", "pool", "epoll")
STORES = ("double_mutex", "per_client", "ring")
KEEP_ALIVES = ("off", "on", "limited")
REPORTS = ("Sanitizer:", "runtime error:")
METRICS = [{"name": f"metric{number}", "value": number / 4} for number in range(3)]
BATCHES = Request(
    method="POST", path="/metrics", expect_status=202,
    body='{"client": "$client", "metrics": ' + json.dumps(METRICS) + "}",
    data=tuple({"client": f"client{number}"} for number in range(150)),
)  # fmt: skip
END_WITHIN_S = 30.0
MOST_SHOWN = 4000


@dataclass(frozen=True)
class Found:
    """What one configuration did: requests, those that met a full queue, failed ones, its end."""

    requests: int
    full: int
    failed: int
    reports: int
    status: int

    @property
    def good(self) -> bool:
        """Whether it ended in order and no sanitizer had a word to say."""
        return self.reports == 0 and self.status == 0


def configurations() -> Iterator[dict[str, str]]:
    """Yield each threading with each store; keep-alive goes around, so that each meets each."""
    for (row, threads), (column, store) in itertools.product(
        enumerate(THREADINGS), enumerate(STORES)
    ):
        keep_alive = KEEP_ALIVES[(row + column) % len(KEEP_ALIVES)]
        yield {"threading": threads, "store": store, "keep_alive": keep_alive}


def built(spec: ServiceSpec, sanitizer: str) -> Path:
    """Return the server with a sanitizer in it, compiled where that was not done before."""
    assert spec.compile is not None
    flags = (*spec.compile.flags, *SANITIZERS[sanitizer])
    part = spec.compile.model_copy(update={"flags": flags})
    named = spec.model_copy(update={"compile": part})
    return compiled.ensure(named, own_folder(compiled_dir()), _tell, never)


def tried(
    made: Generator, program: Path, settings: dict[str, object], work: Workload, log: Path
) -> Found:
    """Start a server, load it, end it; return what it did and what its log holds."""
    port = int(str(settings["port"]))
    words = [f"{name}={value}" for name, value in settings.items()]
    with log.open("wb") as output:
        server = subprocess.Popen([program, *words], stdout=output, stderr=output)
    try:
        bench.wait_for(port, server)
        with asking_beside(f"http://127.0.0.1:{port}"):
            result = made.run(work, f"http://127.0.0.1:{port}")
        requests = sum(map(len, result.rows))
        full = sum(int((rows["status"] == 503).sum()) for rows in result.rows)
        failed = sum(int((rows["error"] != 0).sum()) for rows in result.rows) - full
        result.discard()
        server.terminate()
        with suppress(subprocess.TimeoutExpired):
            server.wait(END_WITHIN_S)
    finally:
        server.kill()
        server.wait()
    text = log.read_text(errors="replace")
    return Found(requests, full, failed, sum(map(text.count, REPORTS)), server.returncode)


@contextmanager
def asking_beside(url: str) -> Iterator[None]:
    """Ask for the counts and reset them, four times a second, as long as this is open."""
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.25):
            for path, body in (("/counts", None), ("/reset", b"")):
                with suppress(OSError):
                    urllib.request.urlopen(f"{url}{path}", body, timeout=5).close()

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        yield
    finally:
        over.set()
        asker.join()


def row(name: str, found: Found) -> str:
    """Return a row of the table."""
    counted = f"{found.requests:>10}{found.full:>8}{found.failed:>8}{found.reports:>9}"
    return f"{name:48}{counted}{found.status:>8}"


def main() -> int:
    """Try all configurations and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sanitizer", choices=list(SANITIZERS), action="append", help="one alone")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each configuration")
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--think-time", type=float, default=0.01, help="seconds")
    given = parser.parse_args()
    arrivals = ClosedLoop(
        users=given.users, duration_s=given.seconds, think_time_s=given.think_time
    )
    work, spec = Workload(request=BATCHES, arrivals=arrivals), load_service("metricstream")
    print(f"{'configuration':48}{'requests':>10}{'503':>8}{'failed':>8}{'reports':>9}{'status':>8}")
    total, bad = 0, 0
    with tempfile.TemporaryDirectory() as folder, bench.generator() as made:
        log = Path(folder, "log")
        for sanitizer in given.sanitizer or SANITIZERS:
            program = built(spec, sanitizer)
            for chosen in configurations():
                own = {"host": "127.0.0.1", "port": bench.free_port()}
                found = tried(made, program, {**own, **spec.resolve(chosen)}, work, log)
                print(row(", ".join([sanitizer, *chosen.values()]), found), flush=True)
                total, bad = total + found.requests, bad + (not found.good)
                if not found.good:
                    _tell(log.read_text(errors="replace")[-MOST_SHOWN:])
    print(f"{total} requests; {bad} configurations with a report or a wrong end")
    return int(bad > 0)


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
