"""Does the capacity search find a capacity that is known?

The server has a number of slots and takes a fixed time for each request, so its capacity is
slots / time. A request that finds every slot taken queues; above capacity the queue grows.
"""

from __future__ import annotations

import time

from benchmarks import bench
from perflab.load import capacity
from perflab.load.workers.generator import Generator
from perflab.load.workload import Objective


def searched(made: Generator, url: str, seconds: float, objective: Objective) -> capacity.Capacity:
    """Search for the most requests a second with which a server holds an objective."""

    def probe(level: float) -> capacity.Probe:
        base = bench.open_load(level, 1, timeout_s=5, objectives=(objective,))
        return capacity.probed(lambda load: made.run(load, url), base, level, seconds, 0.3)

    return capacity.search(probe, 80, most=1e5)


def main() -> None:
    """Search and print the table."""
    given = bench.options(
        __doc__,
        seconds=(2.0, "length of a probe"),
        below_ms=(200.0, "objective for p99"),
    )
    objective = Objective(percentile=99, below_ms=given.below_ms)
    rows = []
    for slots, delay_ms in ((4, 10.0), (8, 4.0), (2, 20.0)):
        server = bench.known_server(kind="constant", delay_ms=delay_ms, slots=slots)
        began = time.monotonic()
        with server as url, bench.generator() as made:
            found = searched(made, url, given.seconds, objective)
        rows.append(
            {
                "known/s": f"{slots / delay_ms * 1e3:.0f}", "held": f"{found.low:.0f}",
                "too much": f"{found.high:.0f}" if found.high else "-", "limit": found.limit,
                "probes": len(found.probes), "seconds": f"{time.monotonic() - began:.0f}",
            }
        )  # fmt: skip
    bench.show(rows)


if __name__ == "__main__":
    main()
