"""A server frozen for 1 s in a 10 s run at 1,000/s: what is reported, against what is true.

Requests planned during the freeze wait for its end: a tenth of all, evenly from 0 to 1 s. So the
true p95 is 500 ms and the true p99 is 900 ms. Peers that count from sending, or do not send while
they wait, report far less. The server is nginx, which catches up quickly: the truth is then the
freeze alone. oha is measured where it is installed, as it comes and with its correction.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psutil

from benchmarks import bench
from perflab.load.checks.selfcheck import check

SECONDS, RATE, FROZEN_S = 10.0, 1000, 1.0
CORRECTED = "--latency-correction"
Row = dict[str, object]


@contextmanager
def freeze(pid: int) -> Iterator[list[float]]:
    """Stop a process for a while in the middle of a load; yields how long it really was."""
    lasted: list[float] = []

    def act() -> None:
        time.sleep(SECONDS / 2)
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


def perflab(url: str, pid: int) -> Row:
    """Measure with perflab."""
    work = bench.open_load(RATE, SECONDS)
    with bench.generator() as made, freeze(pid) as lasted:
        result, rows = bench.measured(made, work, url)
    p95, p99 = np.percentile((rows["done_ns"] - rows["planned_ns"]) / 1e6, (95, 99))
    valid = check(result, work).valid
    result.discard()
    words = f"frozen {lasted[0]:.3f} s, {'valid' if valid else 'INVALID'}"
    return {"client": "perflab", "requests": len(rows), **_in_ms(p95, p99), "": words}


def oha(url: str, pid: int, *words: str) -> Row:
    """Measure with oha."""
    load = ["oha", "--no-tui", "-q", str(RATE), "-c", "50", "-z", f"{SECONDS:g}s", *words, url]
    with freeze(pid):
        text = subprocess.run(load, capture_output=True, text=True, check=True).stdout
    found = {
        share: float(value) * (1e3 if unit in ("s", "secs", "sec") else 1)
        for share, value, unit in re.findall(r"(9[59])\.00% in ([\d.]+) (\w+)", text)
    }
    count = re.search(r"\[200\] (\d+)", text)
    times = _in_ms(found.get("95", np.nan), found.get("99", np.nan))
    return {"client": " ".join(["oha", *words]), "requests": count and count[1], **times, "": ""}


def _in_ms(p95: float, p99: float) -> Row:
    return {"p95 ms": f"{p95:.1f}", "p99 ms": f"{p99:.1f}"}


def main() -> None:
    """Measure and print the table."""
    given = bench.options(__doc__, rounds=2)
    rows: list[Row] = [{"client": "truth", "requests": RATE * SECONDS, **_in_ms(500, 900), "": ""}]
    for _ in range(given.rounds):
        with bench.nginx() as (url, master):
            pid = psutil.Process(master).children()[0].pid
            rows.append(perflab(url, pid))
            if shutil.which("oha"):
                rows += [oha(url, pid), oha(url, pid, CORRECTED)]
    bench.show(rows)


if __name__ == "__main__":
    main()
