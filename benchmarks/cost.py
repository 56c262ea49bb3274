"""What a request costs the client: CPU per keep-alive GET, against peers in the same run.

One server on one core, one client on another, 50 connections, as fast as it goes. Clients take
turns in random order, so drift hits all; the table shows each one's median over the rounds and
its ratio to wrk, paired by round. CPU is user plus system time of the client process, as the
kernel accounts it (wait4); perflab's includes recording every request to disk. Peers that are not
installed are left out.
"""

from __future__ import annotations

import re
import resource
import shutil
import statistics
import subprocess

from benchmarks import bench
from perflab.load.checks.selfcheck import check
from perflab.load.workers.generator import Generator
from perflab.load.workload import ClosedLoop, Request, Workload

# How each is called, and what stands before or after the number of requests that it tells.
PEERS = {
    "wrk": ("wrk -t1 -c50 -d{seconds:g}s {url}", r"(\d+) requests in"),
    "ab": ("ab -q -k -c50 -t{seconds:g} -n10000000 {url}", r"Complete requests:\s+(\d+)"),
    "oha": ("oha --no-tui -c50 -z{seconds:g}s {url}", r"\[200\] (\d+)"),
    "hey": ("hey -cpus 1 -c 50 -z {seconds:g}s {url}", r"\[200\]\s+(\d+)"),
}


def of_peer(name: str, url: str, seconds: float) -> tuple[float, float]:
    """Return CPU time per request in us, and requests per second, of a peer's whole process."""
    command, number = PEERS[name]
    words = bench.on_core(bench.cores()[1], *command.format(seconds=seconds, url=url).split())
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told = re.search(number, done.stdout + done.stderr)
    if told is None:
        raise ValueError(f"{name} does not tell how many requests it made: {done.stdout[-400:]}")
    return cpu_s / int(told[1]) * 1e6, int(told[1]) / seconds


def of_perflab(made: Generator, url: str, seconds: float) -> tuple[float, float]:
    """Return the same of the lab's worker, its whole record included."""
    work = Workload(request=Request(), arrivals=ClosedLoop(users=50, duration_s=seconds))
    result = made.run(work, url)
    found, requests = check(result, work), sum(map(len, result.rows))
    result.discard()
    return found.client_cpu_us_per_request, requests / seconds


def main() -> None:
    """Measure and print the table."""
    given = bench.options(__doc__, rounds=5, seconds=2.0)
    names = ["perflab", *filter(shutil.which, PEERS)]
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    with bench.nginx() as (url, _):
        for name in bench.turns(names, given.rounds):
            if name == "perflab":
                with bench.generator() as made:
                    seen[name].append(of_perflab(made, url, given.seconds))
            else:
                seen[name].append(of_peer(name, url, given.seconds))
    rows = []
    for name, values in seen.items():
        cost, rate = zip(*values, strict=True)
        row = {
            "client": name, "CPU us/request": f"{statistics.median(cost):.2f}",
            "requests/s": f"{statistics.median(rate):.0f}",
        }  # fmt: skip
        if "wrk" in seen:
            row["CPU against wrk"] = bench.ratios(cost, [each for each, _ in seen["wrk"]])
        rows.append(row)
    bench.show(rows)


if __name__ == "__main__":
    main()
