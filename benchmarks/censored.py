"""Are the numbers of a load true although requests ran into their time-out?

A server of 5 ms lets a share of its requests hang far longer than the client waits. What would have
come without a time-out is known: the server's own times of the requests it was asked. A number that
is given, and neither as a bound nor marked as the client's own, is ``wrong`` where it is off that
truth by more than a tenth; a bound, where the truth lies below it. Loads that the self-check
refuses for something else give no numbers.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter

import numpy as np

from benchmarks import bench
from perflab.load.checks.selfcheck import check
from perflab.load.records.times import Number
from perflab.statistics.quantiles import OF_LOADS, percentiles_of
from perflab.statistics.two_samples import Rate

RATE, TIMEOUT_S, DELAY_MS, HANG_MS = 1000.0, 0.5, 5.0, 1500.0
SHARES = (0.0, 0.002, 0.0087, 0.02, 0.06)
GIVEN, BOUND, NONE, WRONG = KINDS = ("given", "bound", "none", "wrong")


def truth_ms(noted: np.ndarray) -> dict[str, float]:
    """Return the numbers of the server's own times, none of them cut off."""
    spent = noted[:, 1] - noted[:, 0]
    found = {f"p{share:g}": value / 1e6 for share, value in percentiles_of(spent, OF_LOADS).items()}
    return {**found, "mean": float(spent.mean()) / 1e6}


def outcome(number: Number, true: float) -> str:
    """Say what became of a number."""
    if not (np.isnan(number.value) or number.is_the_clients):
        return GIVEN if abs(number.value - true) <= 0.1 * true else WRONG
    if not np.isnan(number.at_least):
        return BOUND if number.at_least <= 1.1 * true else WRONG
    return NONE


def outcomes(share: float, seed: int, seconds: float) -> dict[str, str] | None:
    """Send one load; return what became of each number, or None where it was refused."""
    work = bench.open_load(RATE, seconds, timeout_s=TIMEOUT_S)
    server = bench.known_server(
        kind="constant", delay_ms=DELAY_MS, hang_share=share, hang_ms=HANG_MS, seed=seed
    )
    with server as url, bench.generator() as made:
        result = made.run(work, url)
        times, judged = result.response_times.numbers(), check(result, work)
        result.discard()
        noted = settled(url, round(RATE * seconds))
    if any(reason.side != "server" for reason in judged.reasons):
        return None
    return {
        name: outcome(times[name], true)
        for name, true in truth_ms(noted).items()
        if not np.isnan(true)
    }


def settled(url: str, wanted: int) -> np.ndarray:
    """Return the server's notes once all requests are in them: what hangs is noted at its end."""
    parts = [bench.notes(url)]
    deadline = time.monotonic() + 2 * HANG_MS / 1e3
    while sum(map(len, parts)) < wanted and time.monotonic() < deadline:
        time.sleep(0.1)
        parts.append(bench.notes(url))
    return np.concatenate(parts)


def main() -> None:
    """Measure and print the table."""
    given = bench.options(__doc__, runs=(8, "of each share"), seconds=4.0)
    order = [(share, seed) for share in SHARES for seed in range(given.runs)]
    random.shuffle(order)
    refused = 0
    found: dict[tuple[float, str], Counter[str]] = {}
    for number, (share, seed) in enumerate(order):
        print(f"{number + 1}/{len(order)}", file=sys.stderr)
        became = outcomes(share, seed, given.seconds)
        refused += became is None
        for name, kind in (became or {}).items():
            found.setdefault((share, name), Counter())[kind] += 1
    bench.show([
        {
            "hang": f"{share:.2%}", "number": name, **{kind: counts[kind] for kind in KINDS},
            "share wrong": Rate(counts[WRONG], counts.total()).text(),
        }
        for (share, name), counts in sorted(found.items())
    ])  # fmt: skip
    print(f"{refused} of {len(order)} loads were refused for something else")


if __name__ == "__main__":
    main()
