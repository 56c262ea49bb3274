"""Are the numbers of a load true although requests ran into their time-out?

A server of 5 ms lets a share of its requests hang far longer than the client waits. What would have
come without a time-out is known: the server's own times of the requests it was asked. A number that
is given, and neither as a bound nor marked as the client's own, is ``wrong`` where it is off that
truth by more than a tenth; a bound, where the truth lies below it. Loads that the self-check
refuses for something else give no numbers.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

import bench
import numpy as np
from scipy import stats

from perflab.load.selfcheck import check
from perflab.load.times import times_of
from perflab.load.workload import OpenLoop, Request, Stage, Workload
from perflab.percentiles import OF_LOADS, percentiles_of

RATE, TIMEOUT_S, DELAY_MS, HANG_MS = 1000.0, 0.5, 5.0, 1500.0
SHARES = (0.0, 0.002, 0.0087, 0.02, 0.06)
GIVEN, BOUND, NONE, WRONG = "given", "bound", "none", "wrong"
KINDS = (GIVEN, BOUND, NONE, WRONG)


def truth_ms(notes: np.ndarray) -> dict[str, float]:
    """Return the numbers of the server's own times, none of them cut off."""
    spent = notes[:, 1] - notes[:, 0]
    found = {f"p{share:g}": value / 1e6 for share, value in percentiles_of(spent, OF_LOADS).items()}
    return {**found, "mean": float(spent.mean()) / 1e6}


def outcome(value: float, at_least: float, true: float) -> str:
    """Say what became of a number."""
    if not np.isnan(value):
        return GIVEN if abs(value - true) <= 0.1 * true else WRONG
    if not np.isnan(at_least):
        return BOUND if at_least <= 1.1 * true else WRONG
    return NONE


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=8, help="of each share")
    parser.add_argument("--seconds", type=float, default=4.0)
    given = parser.parse_args()
    order = [(share, seed) for share in SHARES for seed in range(given.runs)]
    random.shuffle(order)
    refused = 0
    found: dict[float, dict[str, Counter[str]]] = {share: {} for share in SHARES}
    for number, (share, seed) in enumerate(order):
        print(f"{number + 1}/{len(order)}", file=sys.stderr)
        options = (
            f"--kind=constant --delay-ms={DELAY_MS} --hang-share={share} --hang-ms={HANG_MS} "
            f"--seed={seed}"
        )
        with bench.known_server(*options.split()) as (url, _), bench.generator() as made:
            stage = Stage(rate=RATE, duration_s=given.seconds)
            work = Workload(
                request=Request(), arrivals=OpenLoop(stages=(stage,)), timeout_s=TIMEOUT_S
            )
            result = made.run(work, url)
            times, judged = times_of(result).numbers(), check(result, work)
            result.discard()
            notes = settled(url, round(RATE * given.seconds))
        if any(reason.side != "server" for reason in judged.reasons):
            refused += 1
            continue
        for name, value in truth_ms(notes).items():
            if not np.isnan(value):
                became = outcome(times[name].comparable, times[name].at_least, value)
                found[share].setdefault(name, Counter())[became] += 1
    show(found)
    print(f"{refused} of {len(order)} loads were refused for something else")


def settled(url: str, wanted: int) -> np.ndarray:
    """Return the server's notes once all requests are in them: what hangs is noted at its end."""
    parts = [bench.notes(url)]
    deadline = time.monotonic() + 2 * HANG_MS / 1e3
    while sum(map(len, parts)) < wanted and time.monotonic() < deadline:
        time.sleep(0.1)
        parts.append(bench.notes(url))
    return np.concatenate(parts)


def show(found: dict[float, dict[str, Counter[str]]]) -> None:
    """Print what became of every number."""
    print(f"{'hang':>7}  {'number':8}{GIVEN:>7}{BOUND:>7}{NONE:>7}{WRONG:>7}  wrong, 95%")
    for share, numbers in found.items():
        for name, became in numbers.items():
            n = sum(became.values())
            low, high = stats.binomtest(became[WRONG], n).proportion_ci(method="wilson")
            counts = "".join(f"{became[kind]:>7}" for kind in KINDS)
            print(f"{share:>7.2%}  {name:8}{counts}  [{low:.0%}, {high:.0%}]")


if __name__ == "__main__":
    main()
