"""Does the capacity search find a capacity that is known?

The server has a number of slots and takes a fixed time for each request, so its capacity is
slots / time. A request that finds every slot taken queues; above capacity the queue grows.
"""

from __future__ import annotations

import argparse
import time

import bench

from perflab.load import capacity, report
from perflab.load.selfcheck import check
from perflab.load.workload import Objective, OpenLoop, Request, Stage, StopRules, Workload


def main() -> None:
    """Search and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a probe")
    parser.add_argument("--below-ms", type=float, default=200.0, help="objective for p99")
    given = parser.parse_args()
    objective = Objective(percentile=99, below_ms=given.below_ms)
    print(f"{'known/s':>10}{'held':>10}{'too much':>10}{'limit':>8}{'probes':>8}{'seconds':>9}")
    for slots, delay_ms in ((4, 10.0), (8, 4.0), (2, 20.0)):
        options = ("--kind", "constant", "--delay-ms", str(delay_ms), "--slots", str(slots))
        with bench.known_server(*options) as (url, _), bench.generator() as made:

            def probe(level: float, url: str = url, made: bench.Generator = made) -> capacity.Probe:
                arrivals = OpenLoop(stages=(Stage(rate=level, duration_s=1),))
                rules = StopRules(objectives=(objective,))
                base = Workload(request=Request(), arrivals=arrivals, timeout_s=5, stop=rules)
                load = capacity.at_level(base, level, given.seconds, 0.3)
                result = made.run(load, url)
                shown = report.summary(result, load, check(result, load))
                result.discard()
                return capacity.judged(level, shown, [objective])

            began = time.monotonic()
            found = capacity.search(probe, 80, most=1e5)
            took = time.monotonic() - began
        high = f"{found.high:.0f}" if found.high else "-"
        print(
            f"{slots / delay_ms * 1e3:>10.0f}{found.low:>10.0f}{high:>10}{found.limit:>8}"
            f"{len(found.probes):>8}{took:>9.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
