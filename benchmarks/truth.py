"""Do the percentiles tell the truth? Reported response times against the server's own record.

The server delays each answer by a known distribution and notes when a request came and when it
answered. What the client reports beyond that is the network and the client itself.
"""

from __future__ import annotations

import argparse

import bench
import numpy as np

from perflab.load.selfcheck import check
from perflab.load.workload import OpenLoop, Request, Stage, Workload

SHARES = (50, 99, 99.9)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=5000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--delay-ms", type=float, default=5.0)
    given = parser.parse_args()
    print(
        f"{'delays':10}{'percentile':>11}{'true ms':>10}{'reported':>10}{'off by ms':>11}  allowed"
    )
    for _ in range(given.rounds):
        for kind in ("constant", "bimodal", "heavy"):
            options = ("--kind", kind, "--delay-ms", str(given.delay_ms))
            with bench.known_server(*options) as (url, _), bench.generator() as made:
                stage = Stage(rate=given.rate, duration_s=given.seconds)
                arrivals = OpenLoop(stages=(stage,), arrivals="poisson", warmup_s=1.0)
                work = Workload(request=Request(), arrivals=arrivals)
                result, rows = bench.measured(made, work, url)
                notes = bench.notes(url)
                notes = notes[np.argsort(notes[:, 0])][-len(rows) :]
                true_ms = (notes[:, 1] - notes[:, 0]) / 1e6
                told_ms = (rows["done_ns"] - rows["planned_ns"]) / 1e6
                valid = check(result, work).valid
                result.discard()
            for share in SHARES:
                true, told = np.percentile(true_ms, share), np.percentile(told_ms, share)
                allowed = max(0.2, 0.02 * true)
                verdict = "yes" if abs(told - true) <= allowed else "NO"
                print(
                    f"{kind:10}{share:>11g}{true:>10.3f}{told:>10.3f}{told - true:>+11.3f}"
                    f"  {verdict} ({allowed:.2f} ms){'' if valid else '  INVALID'}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
