"""Is a starved client refused, or are its times bounds that hold; is a healthy one left alone?

Three ways to starve: busy processes on the client's core, a worker that is stopped again and
again for 30 ms, and a core's worth of load beyond what the client can send; in an open loop, and
in a closed one of as many users as it takes. Healthy: the same loops, undisturbed.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks import bench
from perflab.load.checks.selfcheck import check
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.statistics.two_samples import Rate

RATE, USERS = 2000, 8
# More than a core can send: what they wait for is the client, and not the server's 2 ms.
TOO_FAST, TOO_MANY = 200_000, 400
# At a higher priority than the client's own, or it would not notice them; with pauses, or the
# kernel's limit on real-time work would give them the core for 950 ms at a time.
NEIGHBOUR = """
import os, time
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
except OSError:
    pass
while True:
    end = time.monotonic() + 0.004
    while time.monotonic() < end:
        pass
    time.sleep(0.004)
"""
HEALTHY = "healthy"
NEIGHBOURS, STOPPED = "busy neighbours", "stopped again and again"
TOO_MUCH = "more than it can send"
LOOPS = ("open", "closed")


@contextlib.contextmanager
def starved(way: str, pid: int) -> Iterator[None]:
    """Starve the client in a way."""
    if way == NEIGHBOURS:
        command = bench.on_core(bench.cores()[1], sys.executable, "-c", NEIGHBOUR)
        child = subprocess.Popen(command)
        try:
            yield
        finally:
            child.kill()
            child.wait()
    elif way == STOPPED:
        with _stutter(pid):
            yield
    else:
        yield


@contextlib.contextmanager
def _stutter(pid: int) -> Iterator[None]:
    """Stop a process for 30 ms again and again."""
    over = threading.Event()

    def act() -> None:
        while not over.wait(0.1):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.03)
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True)
class Judged:
    """A load as the client judged it; ``client_ms`` of ``mean_ms`` may be its own."""

    valid: bool
    marked: bool
    mean_ms: float
    client_ms: float

    def holds(self, usual_ms: float) -> bool:
        """Return whether the mean of healthy loads lies between the ends, give or take a tenth."""
        return 0.9 * (self.mean_ms - self.client_ms) <= usual_ms <= 1.1 * self.mean_ms


def workload(loop: str, way: str, seconds: float) -> Workload:
    """Return the load of a loop; beyond what the client can send where it is starved by that."""
    if loop == "open":
        return bench.open_load(TOO_FAST if way == TOO_MUCH else RATE, seconds)
    users = TOO_MANY if way == TOO_MUCH else USERS
    return Workload(request=Request(), arrivals=ClosedLoop(users=users, duration_s=seconds))


def main() -> None:
    """Measure and print the table."""
    given = bench.options(
        __doc__,
        runs=(7, "of each loop and way"),
        healthy=(20, "healthy runs of each loop"),
        seconds=2.0,
    )
    runs = {HEALTHY: given.healthy} | dict.fromkeys((NEIGHBOURS, STOPPED, TOO_MUCH), given.runs)
    order = [(loop, way) for loop in LOOPS for way, n in runs.items() for _ in range(n)]
    random.shuffle(order)
    loads: dict[tuple[str, str], list[Judged]] = {key: [] for key in sorted(set(order))}
    with bench.known_server(kind="constant", delay_ms=2) as url:
        for number, (loop, way) in enumerate(order):
            work = workload(loop, way, given.seconds)
            with bench.generator() as made, starved(way, made.pids[0]):
                result = made.run(work, url)
            judgement, mean = check(result, work), result.response_times.numbers()["mean"]
            result.discard()
            load = Judged(judgement.valid, mean.is_the_clients, mean.value, mean.client_ms)
            loads[loop, way].append(load)
            why = str(judgement.reasons[0]) if judgement.reasons else "valid"
            why += f"; mean {load.mean_ms:.2f} ms, up to {load.client_ms:.2f} the client's"
            print(f"{number + 1}/{len(order)} {loop}, {way}: {why}", file=sys.stderr)
    rows = []
    for (loop, way), judged in loads.items():
        usual_ms = float(np.median([load.mean_ms for load in loads[loop, HEALTHY]]))
        valid = [load for load in judged if load.valid]
        counts = {
            "refused": [not load.valid for load in judged],
            "of the others marked": [load.marked for load in valid],
            "of the others true within bounds": [load.holds(usual_ms) for load in valid],
        }
        rates = {name: Rate(sum(of), len(of)).text() if of else "" for name, of in counts.items()}
        rows.append({"loop": loop, "client": way, **rates})
    bench.show(rows)


if __name__ == "__main__":
    main()
