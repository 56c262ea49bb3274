"""What pairing within rounds gains: interval widths of blocks, slices and a duet in the same time.

benchmarks/pairing.py --minutes 240                    # all of it, on a quiet machine
benchmarks/pairing.py --services echo --repetitions 1 --starts 2 --length 4     # see that it runs

Two copies of a service (A/A), and two that differ in one setting (planted), are compared by each
design in turn, in random order, all designs with as many starts of the services and as much time
in each. *Blocks*: one whole trial of each treatment per start. *Slices* and *duet*: as in
perflab/trials/rounds.py. A ratio is compared over starts; "within" is what the rounds of one start
alone would say, about these very processes.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pandas as pd
from pairing_starts import FIRST, RESPONSES, SECOND, Start, generators, measure
from pairing_subjects import SUBJECTS

from perflab.analysis.methods.comparison import Effect
from perflab.analysis.methods.serial import FEWEST_ROUNDS, mean_of_series
from perflab.analysis.treatments.rounds import effect_of_starts
from perflab.host.lock import measurement_lock
from perflab.trials.designs import DUET_MS, Design
from perflab.trials.rounds import Rounds

DESIGNS = ("blocks", "slices", "duet")
CASES = ("A/A", "planted")
TRIAL_SETTLE_MS, SHORTEST_S = 1_000.0, 4.0
# What starting, warming up and ending take of each start: only to share out the time.
AROUND_S = {"echo": 5.0, "inference": 11.0, "chat": 9.0}


def rounds_of(design: str, length_s: float, slice_ms: float, seed: int) -> Rounds:
    """Return the rounds of one start, all designs with as much time."""
    both, together = (FIRST, SECOND), design == "duet"
    cut = Design(slice_ms=DUET_MS if together else slice_ms)
    gap_s = cut.gap_ms / 1e3
    if design == "blocks":
        trial_ms = (length_s / 2 - gap_s) * 1e3
        return Rounds(both, 1, trial_ms, TRIAL_SETTLE_MS, cut.gap_ms, seed)
    step_s = (cut.slice_ms / 1e3 + gap_s) * (1 if together else 2)
    count = max(1, int(length_s / step_s))
    return Rounds(both, count, cut.slice_ms, cut.settle_ms, cut.gap_ms, seed, together)


@dataclass
class Measured:
    """One comparison by one design: its starts, and how long it took on the wall."""

    service: str
    case: str
    design: str
    starts: list[Start] = field(default_factory=list)
    wall_s: float = 0.0

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield what it showed of each response."""
        valid = [each for each in self.starts if not each.reasons]
        for response in RESPONSES if len(valid) > 1 else ():
            series = [each.ratios[response] for each in valid]
            effect = effect_of_starts(series)
            yield {
                "service": self.service, "case": self.case, "design": self.design,
                "response": response, "ratio": effect.estimate, "low": effect.low,
                "high": effect.high, "half": _half(effect),
                "within": _within(series), "alarm": effect.p_value <= 1 - effect.confidence,
                "minutes": self.wall_s / 60, "starts": f"{len(valid)}/{len(self.starts)}",
                "carried over": float(np.mean([each.carried_over for each in valid])),
            }  # fmt: skip


def _half(effect: Effect) -> float:
    return (math.log(effect.high) - math.log(effect.low)) / 2


def _within(series: Sequence[np.ndarray]) -> float:
    """Return the half width that the rounds of one start give, as their root mean square."""
    if min(map(len, series)) < FEWEST_ROUNDS:
        return math.nan
    halves = [(found.high - found.low) / 2 for found in map(mean_of_series, series)]
    return float(np.sqrt(np.mean(np.square(halves))))


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return each design beside blocks: how wide its intervals are at equal time, and its alarms.

    Widths are set to the same time by its square root, and taken together as geometric means.
    """
    scaled = table.assign(log=np.log(table["half"] * np.sqrt(table["minutes"])))
    found = []
    for (service, response), group in scaled.groupby(["service", "response"], sort=False):
        blocks = group[group["design"] == "blocks"]["log"].mean()
        for design, own in group.groupby("design", sort=False):
            same, other = (own[own["case"] == case] for case in CASES)
            spread = np.exp(own["log"] - blocks)
            found.append(
                {
                    "service": service,
                    "response": response,
                    "design": design,
                    "half width per minute": f"{math.exp(own['log'].mean()):.2%}",
                    "of that of blocks": f"{math.exp(own['log'].mean() - blocks):.2f} "
                    f"({spread.min():.2f} to {spread.max():.2f})",
                    "within a start": f"{own['within'].mean():.2%}",
                    "A/A alarms": f"{int(same['alarm'].sum())} of {len(same)}",
                    "A/A ratio": _numbers(same["ratio"]),
                    "planted ratio": _numbers(other["ratio"]),
                    "carried over": f"{own['carried over'].mean():.1%}",
                }
            )
    return pd.DataFrame(found)


def _numbers(ratios: pd.Series[float]) -> str:
    return ", ".join(f"{each:.3f}" for each in ratios) or "-"


def carried_out(given: argparse.Namespace) -> pd.DataFrame:
    """Measure every repetition of every cell in random order; return a row per response."""
    chance = random.Random(given.seed)
    length_s = given.length or length_of_start_s(given)
    rows: list[dict[str, object]] = []
    with generators() as workers:
        for repetition in range(given.repetitions):
            cells = list(product(given.services, CASES, DESIGNS))
            chance.shuffle(cells)
            for service, case, design in cells:
                found, subject = Measured(service, case, design), SUBJECTS[service]()
                began = time.monotonic()
                for _ in range(given.starts):
                    slice_ms = given.slice_ms or subject.slice_ms
                    rounds = rounds_of(design, length_s, slice_ms, chance.randrange(2**32))
                    found.starts.append(measure(subject, case, rounds, workers))
                found.wall_s = time.monotonic() - began
                own = [{"repetition": repetition, **row} for row in found.rows()]
                rows += own
                _tell(found, own)
    return pd.DataFrame(rows)


def _tell(found: Measured, rows: Sequence[dict[str, object]]) -> None:
    print(f"{found.service} {found.case} {found.design}: {found.wall_s:.0f} s", file=sys.stderr)
    for reason in dict.fromkeys(text for each in found.starts for text in each.reasons):
        print(f"  left out a start: {reason}", file=sys.stderr)
    for row in rows:
        interval = f"{row['ratio']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
        print(f"  {row['response']}: {interval}", file=sys.stderr)


def length_of_start_s(given: argparse.Namespace) -> float:
    """Return how long each start is loaded, so that all together take the time that was given."""
    of_each = given.repetitions * given.starts * len(CASES) * len(DESIGNS)
    around_s = sum(AROUND_S[service] for service in given.services)
    length_s = (given.minutes * 60 / of_each - around_s) / len(given.services)
    if length_s < SHORTEST_S:
        sys.exit(
            f"--minutes {given.minutes:g} leaves {length_s:.1f} s of load for each of {of_each} "
            f"starts, and {SHORTEST_S:g} are needed: give more, or fewer --repetitions, --starts "
            "or --services"
        )
    return length_s


def options() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=240.0, help="for everything together")
    parser.add_argument("--services", nargs="+", choices=list(SUBJECTS), default=list(SUBJECTS))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--starts", type=int, default=8, help="starts of the services, 2 at least")
    parser.add_argument("--length", type=float, default=0.0, help="s of load per start")
    parser.add_argument("--slice-ms", type=float, default=0.0, help="0: as each service needs")
    parser.add_argument("--wait", type=float, default=0.0, help="s to wait for the host")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="", help="a CSV file for every comparison")
    given = parser.parse_args()
    if given.starts < 2:
        parser.error("--starts must be 2 at least: a single start has no interval over starts")
    return given


def main() -> None:
    """Measure, and print the tables."""
    given = options()
    with measurement_lock("benchmarks/pairing.py", wait_s=given.wait):
        table = carried_out(given)
    if given.out:
        table.to_csv(given.out, index=False)
    if table.empty:
        sys.exit("no comparison has two valid starts; the reasons are above")
    print(summary(table).to_string(index=False))


if __name__ == "__main__":
    main()
