"""Does the self-check catch a starved client, and leave a healthy one alone?

Three ways to starve: busy processes on the client's core, a worker that is stopped again and
again for 30 ms, and a core's worth of load beyond what the client can send; in an open loop, and
in a closed one of as many users as it takes. Healthy: the same loops, undisturbed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import bench
from scipy import stats

from perflab.load.selfcheck import check
from perflab.load.workload import ClosedLoop, OpenLoop, Request, Stage, Workload

RATE, USERS = 2000, 8
# More users than a core can serve: what they wait for is the client, and not the server's 2 ms.
TOO_MANY = 400
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
WAYS = ("busy neighbours", "stopped again and again", "more than it can send")
LOOPS = ("open", "closed")


@contextlib.contextmanager
def starved(way: str, pid: int) -> Iterator[None]:
    """Starve the client in a way."""
    over = threading.Event()
    children: list[subprocess.Popen[bytes]] = []

    def stutter() -> None:
        while not over.wait(0.1):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.03)
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=stutter)
    if way == WAYS[0]:
        command = ["taskset", "-c", str(bench.cores()[1]), sys.executable, "-c", NEIGHBOUR]
        children = [subprocess.Popen(command)]
    if way == WAYS[1]:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if thread.is_alive():
            thread.join()
        for child in children:
            child.kill()
            child.wait()


def workload(loop: str, way: str, seconds: float) -> Workload:
    """Return the load of a loop; beyond what the client can send where it is starved by that."""
    if loop == "closed":
        users = TOO_MANY if way == WAYS[2] else USERS
        return Workload(request=Request(), arrivals=ClosedLoop(users=users, duration_s=seconds))
    stage = Stage(rate=200_000 if way == WAYS[2] else RATE, duration_s=seconds)
    return Workload(request=Request(), arrivals=OpenLoop(stages=(stage,)))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7, help="of each loop and way")
    parser.add_argument("--healthy", type=int, default=20, help="healthy runs of each loop")
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    runs = {HEALTHY: given.healthy, **dict.fromkeys(WAYS, given.runs)}
    order = [(loop, way) for loop in LOOPS for way, n in runs.items() for _ in range(n)]
    random.shuffle(order)
    refused: dict[tuple[str, str], list[bool]] = {key: [] for key in sorted(set(order))}
    with bench.known_server("--kind", "constant", "--delay-ms", "2") as (url, _):
        for number, (loop, way) in enumerate(order):
            work = workload(loop, way, given.seconds)
            with bench.generator() as made, starved(way, made.pids[0]):
                result = made.run(work, url)
            found = check(result, work)
            result.discard()
            refused[loop, way].append(not found.valid)
            why = found.reasons[0] if found.reasons else "valid"
            print(f"{number + 1}/{len(order)} {loop}, {way}: {why}", file=sys.stderr)
    print(f"{'loop':8}{'client':26}{'refused':>9}  95%")
    for (loop, way), each in refused.items():
        low, high = stats.binomtest(sum(each), len(each)).proportion_ci(method="wilson")
        print(f"{loop:8}{way:26}{f'{sum(each)} of {len(each)}':>9}  [{low:.0%}, {high:.0%}]")


if __name__ == "__main__":
    main()
