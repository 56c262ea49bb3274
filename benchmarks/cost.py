"""What a request costs the client: CPU per keep-alive GET, against peers in the same run.

One server on one core, one client on another, 50 connections, as fast as it goes. Clients take
turns in random order, so drift hits all; the table shows each one's median over the rounds and
its ratio to wrk, paired by round. CPU is user plus system time of the client process, as the
kernel accounts it (wait4); perflab's includes recording every request to disk.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable

import nginx

from perflab.load.generator import Generator
from perflab.load.selfcheck import check
from perflab.load.workload import ClosedLoop, Request, Workload

HELLO = 'location / { return 200 "hello world\\n"; }'
Measure = Callable[[str, float], tuple[float, float]]


def peer(core: int, command: list[str], count: Callable[[str], int]) -> Measure:
    """Measure a peer's whole process; its own output says how many requests it made."""

    def measure(url: str, seconds: float) -> tuple[float, float]:
        words = [word.format(url=url, seconds=f"{seconds:g}") for word in command]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            ["taskset", "-c", str(core), *words], capture_output=True, text=True, check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        requests = count(done.stdout + done.stderr)
        return cpu_s / requests * 1e6, requests / seconds

    return measure


def perflab(core: int) -> Measure:
    """Measure perflab's worker, its whole record included."""

    def measure(url: str, seconds: float) -> tuple[float, float]:
        generator = Generator([core], {})
        generator.start()
        work = Workload(request=Request(), arrivals=ClosedLoop(users=50, duration_s=seconds))
        try:
            result = generator.run(work, url)
        finally:
            generator.close()
        found = check(result, work)
        requests = sum(map(len, result.rows))
        result.discard()
        return found.cpu_us_per_request, requests / seconds

    return measure


def _number_after(text: str, *words: str) -> int:
    for line in text.splitlines():
        if all(word in line for word in words):
            return int(next(part for part in line.replace(":", " ").split() if part.isdigit()))
    raise ValueError(f"no line with {words} in: {text[-400:]}")


def clients(core: int) -> dict[str, Measure]:
    """Return perflab and every peer that is installed."""
    wrk = ["wrk", "-t1", "-c50", "-d{seconds}s", "{url}"]
    ab = ["ab", "-q", "-k", "-c50", "-t{seconds}", "-n10000000", "{url}"]
    oha = ["oha", "--no-tui", "-c50", "-z{seconds}s", "{url}"]
    hey = ["hey", "-cpus", "1", "-c", "50", "-z", "{seconds}s", "{url}"]
    known = {
        "wrk": (wrk, lambda text: _number_after(text, "requests in")),
        "ab": (ab, lambda text: _number_after(text, "Complete requests")),
        "oha": (oha, lambda text: _number_after(text, "[200]")),
        "hey": (hey, lambda text: _number_after(text, "[200]")),
    }
    found = {
        name: peer(core, command, count)
        for name, (command, count) in known.items()
        if shutil.which(name)
    }
    return {"perflab": perflab(core), **found}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("cost: needs two cores, one for the server and one for the client")
    measures = clients(cores[-1])
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in measures}
    with nginx.serving(cores[0], HELLO) as (address, _):
        url = f"{address}/"
        for number in range(given.rounds):
            order = random.sample(list(measures), len(measures))
            for name in order:
                seen[name].append(measures[name](url, given.seconds))
            print(f"round {number + 1} of {given.rounds}: {', '.join(order)}", file=sys.stderr)
    print(f"{'client':10}{'CPU us/request':>16}{'requests/s':>12}{'CPU against wrk':>28}")
    for name, values in seen.items():
        cost = statistics.median(cpu for cpu, _ in values)
        rate = statistics.median(rate for _, rate in values)
        shown = ""
        if "wrk" in seen:
            ratios = [own / other for (own, _), (other, _) in zip(values, seen["wrk"], strict=True)]
            shown = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"{name:10}{cost:>16.2f}{rate:>12.0f}{shown:>28}")


if __name__ == "__main__":
    main()
