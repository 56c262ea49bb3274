"""Does the generator keep its schedule? Judged by its own record and by the server's clock.

Lag is the take-up of a request minus its planned instant. The server's lag is the arrival on the
server's own clock minus the planned instant, so it holds the network and the server's waking too.
Gaps of a Poisson schedule: the Kolmogorov-Smirnov p of the planned gaps, and the distance D of
the gaps between arrivals at the server, which cannot be shorter than it takes to handle one. A
constant schedule has no distribution to test; the share of its gaps near 1/rate is shown.
"""

from __future__ import annotations

import argparse

import bench
import numpy as np
from scipy import stats

from perflab.load.selfcheck import check
from perflab.load.workload import OpenLoop, Request, Stage, Workload


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    print(
        f"{'rate':>6} {'arrivals':9}{'lag p50':>9}{'p99':>8}{'server p50':>12}{'p99':>8} ms"
        f"{'rate error':>12}{'gaps':>36}  valid"
    )
    with bench.known_server() as (url, _), bench.generator() as made:
        for number in range(given.rounds):
            for rate in (1000, 5000):
                for kind in ("constant", "poisson"):
                    stage = Stage(rate=rate, duration_s=given.seconds)
                    work = Workload(
                        request=Request(),
                        arrivals=OpenLoop(
                            stages=(stage,), arrivals=kind, seed=number, warmup_s=0.5
                        ),
                    )
                    bench.notes(url)
                    result, rows = bench.measured(made, work, url)
                    line(rate, kind, rows, bench.notes(url)[:, 0], check(result, work).valid)
                    result.discard()


def line(rate: float, kind: str, rows: np.ndarray, came: np.ndarray, valid: bool) -> None:
    """Print one load."""
    came = np.sort(came)[-len(rows) :]
    lag_ms = (rows["started_ns"] - rows["planned_ns"]) / 1e6
    server_ms = (came - rows["planned_ns"]) / 1e6
    seen = (len(came) - 1) / (came[-1] - came[0]) * 1e9
    planned = (len(rows) - 1) / (rows["planned_ns"][-1] - rows["planned_ns"][0]) * 1e9
    gaps = np.diff(came) / 1e9
    if kind == "poisson":
        wanted = np.diff(rows["planned_ns"]) / 1e9
        p = stats.kstest(wanted * rate, "expon").pvalue
        distance = stats.kstest(gaps * rate, "expon").statistic
        shown = f"planned p = {p:.2f}, arrived D = {distance:.3f}"
    else:
        inside = float(np.mean(np.abs(gaps - 1 / rate) < 0.25e-3))
        shown = f"{inside:.2%} within 0.25 ms of 1/rate"
    print(
        f"{rate:>6} {kind:9}{np.percentile(lag_ms, 50):>9.3f}{np.percentile(lag_ms, 99):>8.3f}"
        f"{np.percentile(server_ms, 50):>12.3f}{np.percentile(server_ms, 99):>8.3f}   "
        f"{seen / planned - 1:>+12.4%}{shown:>36}  {valid}",
        flush=True,
    )


if __name__ == "__main__":
    main()
