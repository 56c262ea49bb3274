"""A server frozen for 1 s in a 10 s run at 1,000/s: what is reported, against what is true.

Requests planned during the freeze wait for its end: a tenth of all, evenly from 0 to 1 s. So the
true p95 is 500 ms and the true p99 is 900 ms. Peers that count from sending, or do not send while
they wait, report far less.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import bench
import numpy as np
import psutil
from cost import nginx

from perflab.load.selfcheck import check
from perflab.load.workload import OpenLoop, Request, Stage, Workload

SECONDS, RATE, FROZEN_S = 10.0, 1000, 1.0


@contextmanager
def freeze(pid: int, after_s: float) -> Iterator[list[float]]:
    """Stop a process for a while in the background; yields how long it really was."""
    lasted: list[float] = []

    def act() -> None:
        time.sleep(after_s)
        os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        time.sleep(FROZEN_S)
        os.kill(pid, signal.SIGCONT)
        lasted.append(time.monotonic() - began)

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield lasted
    finally:
        thread.join()


def perflab(url: str, pid: int) -> str:
    """Measure with perflab."""
    stage = Stage(rate=RATE, duration_s=SECONDS)
    work = Workload(request=Request(), arrivals=OpenLoop(stages=(stage,)))
    with bench.generator() as made, freeze(pid, SECONDS / 2) as lasted:
        result, rows = bench.measured(made, work, url)
    times = (rows["done_ns"] - rows["planned_ns"]) / 1e6
    p95, p99 = np.percentile(times, (95, 99))
    valid = check(result, work).valid
    result.discard()
    return (
        f"{len(rows):>9}{p95:>10.1f}{p99:>10.1f}   frozen {lasted[0]:.3f} s, "
        f"{int((rows['error'] != 0).sum())} errors, valid: {valid}"
    )


def oha(url: str, pid: int) -> str:
    """Measure with oha, without and with its correction."""
    lines = []
    for flag in ([], ["--latency-correction"]):
        command = [
            "oha",
            "--no-tui",
            "-q",
            str(RATE),
            "-c",
            "50",
            "-z",
            f"{SECONDS:g}s",
            *flag,
            url,
        ]
        with freeze(pid, SECONDS / 2):
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = {
            share: float(value) * (1e3 if unit in ("s", "secs", "sec") else 1)
            for share, value, unit in re.findall(r"(9[59])\.00% in ([\d.]+) (\w+)", text)
        }
        count = re.search(r"\[200\] (\d+)", text)
        name = "with its correction" if flag else "as it comes"
        lines.append(
            f"{int(count[1]) if count else 0:>9}{found.get('95', np.nan):>10.1f}"
            f"{found.get('99', np.nan):>10.1f}   {name}"
        )
    return ("\n" + " " * 10).join(lines)


def worker_of_nginx() -> int:
    """Return the process id of the worker of the nginx that this process started."""
    masters = [child for child in psutil.Process().children() if child.name() == "nginx"]
    return int(masters[0].children()[0].pid)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    print(f"{'client':10}{'requests':>9}{'p95 ms':>10}{'p99 ms':>10}")
    print(f"{'truth':10}{RATE * SECONDS:>9.0f}{500:>10.1f}{900:>10.1f}")
    for _ in range(given.rounds):
        # A server that catches up quickly: the truth is then the freeze alone.
        with nginx(bench.cores()[0]) as url:
            pid = worker_of_nginx()
            print(f"{'perflab':10}{perflab(url, pid)}", flush=True)
            if shutil.which("oha"):
                print(f"{'oha':10}{oha(url, pid)}", flush=True)


if __name__ == "__main__":
    main()
