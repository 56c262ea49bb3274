"""Do the percentiles tell the truth? Reported response times against the server's own record.

The server delays each answer by a known distribution and notes when a request came and when it
answered. What the client reports beyond that is the network and the client itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import bench
from perflab.load.checks.selfcheck import check

SHARES = (50, 99, 99.9)
KINDS = ("constant", "bimodal", "heavy")


def compared(
    kind: str, rate: float, seconds: float, delay_ms: float
) -> Iterator[dict[str, object]]:
    """Send a load; yield each percentile beside the true one."""
    work = bench.open_load(rate, seconds, arrivals="poisson", warmup_s=1.0)
    with bench.known_server(kind=kind, delay_ms=delay_ms) as url, bench.generator() as made:
        result, rows = bench.measured(made, work, url)
        noted = bench.notes(url)
    noted = noted[np.argsort(noted[:, 0])][-len(rows) :]
    true_ms = (noted[:, 1] - noted[:, 0]) / 1e6
    told_ms = (rows["done_ns"] - rows["planned_ns"]) / 1e6
    valid = check(result, work).valid
    result.discard()
    for share in SHARES:
        true, told = np.percentile(true_ms, share), np.percentile(told_ms, share)
        allowed = max(0.2, 0.02 * true)
        yield {
            "delays": kind, "percentile": share, "true ms": f"{true:.3f}",
            "reported": f"{told:.3f}", "off by ms": f"{told - true:+.3f}",
            "allowed": f"{allowed:.2f}", "within": "yes" if abs(told - true) <= allowed else "NO",
            "load": "valid" if valid else "INVALID",
        }  # fmt: skip


def main() -> None:
    """Measure and print the table."""
    given = bench.options(__doc__, rate=5000.0, seconds=5.0, rounds=2, delay_ms=5.0)
    bench.show([
        row
        for kind in bench.turns(KINDS, given.rounds)
        for row in compared(kind, given.rate, given.seconds, given.delay_ms)
    ])  # fmt: skip


if __name__ == "__main__":
    main()
