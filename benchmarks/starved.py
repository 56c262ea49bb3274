"""Does the self-check catch a starved client, and leave a healthy one alone?

Three ways to starve: busy processes on the client's core, a worker that is stopped again and
again for 30 ms, and a core's worth of load beyond what the client can send. Healthy: the same
open loop, undisturbed.
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

from perflab.load.selfcheck import check
from perflab.load.workload import OpenLoop, Request, Stage, Workload

RATE = 2000
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
WAYS = ("busy neighbours", "stopped again and again", "more than it can send")


@contextlib.contextmanager
def starved(way: str, pid: int) -> Iterator[float]:
    """Starve the client in a way; yields the rate to ask for."""
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
        yield 200_000 if way == WAYS[2] else RATE
    finally:
        over.set()
        if thread.is_alive():
            thread.join()
        for child in children:
            child.kill()
            child.wait()


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="of starved and of healthy clients")
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    order = ["healthy"] * given.runs + [WAYS[number % 3] for number in range(given.runs)]
    random.shuffle(order)
    flagged: dict[str, list[str]] = {name: [] for name in ("healthy", *WAYS)}
    with bench.known_server("--kind", "constant", "--delay-ms", "2") as (url, _):
        for number, way in enumerate(order):
            with bench.generator() as made, starved(way, made.pids[0]) as rate:
                stage = Stage(rate=rate, duration_s=given.seconds)
                work = Workload(request=Request(), arrivals=OpenLoop(stages=(stage,)))
                result = made.run(work, url)
            found = check(result, work)
            result.discard()
            flagged[way].append(str(found.reasons[0]) if found.reasons else "")
            print(
                f"{number + 1}/{len(order)} {way}: {flagged[way][-1] or 'valid'}", file=sys.stderr
            )
    print(f"{'client':28}{'runs':>6}{'flagged':>9}")
    for way, reasons in flagged.items():
        print(f"{way:28}{len(reasons):>6}{sum(map(bool, reasons)):>9}")


if __name__ == "__main__":
    main()
