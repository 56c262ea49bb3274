"""A long load at full speed: does the worker grow, does it slow down, is every request there?

50 connections against nginx on the other core, keep-alive. Every tenth of the time: requests per
second, and the worker's resident memory. At the end: the time and memory that judging and
summarising the whole record takes, in the process that asked for the load.
"""

from __future__ import annotations

import argparse
import resource
import time
from itertools import pairwise

import bench
import psutil
from cost import nginx

from perflab.load import report
from perflab.load.selfcheck import check
from perflab.load.stopping import Progress
from perflab.load.workload import ClosedLoop, Request, Workload

PARTS = 10


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--users", type=int, default=50)
    given = parser.parse_args()
    arrivals = ClosedLoop(
        users=given.users, duration_s=given.seconds, max_duration_s=given.seconds + 60
    )
    seen: list[tuple[float, int, float]] = []
    with nginx(bench.cores()[0]) as url, bench.generator() as made:
        worker = psutil.Process(made.pids[0])
        began = time.monotonic()

        def look(progress: Progress) -> None:
            spent = time.monotonic() - began
            if spent >= given.seconds * len(seen) / PARTS:
                seen.append((spent, progress.finished, worker.memory_info().rss / 1e6))

        work = Workload(request=Request(), arrivals=arrivals)
        result = made.run(work, url, look)
        before = time.monotonic()
        found = check(result, work)
        shown = report.summary(result, work, found)
        judged_s = time.monotonic() - before
        result.discard()
    print(f"{'after s':>9}{'requests':>14}{'per second':>12}{'worker MB':>11}")
    for (s0, n0, _), (s1, n1, memory) in pairwise(seen):
        print(f"{s1:>9.0f}{n1:>14,}{(n1 - n0) / (s1 - s0):>12,.0f}{memory:>11.1f}")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{shown['requests']:,} requests, {shown['errors']} errors; judged and summarised in "
        f"{judged_s:.0f} s, peak {peak_mb:,.0f} MB (the mapped record included)"
    )


if __name__ == "__main__":
    main()
