"""SIGKILL over every process of a sweep: what is lost, what is left, and how long it lives on.

Each sweep measures one cell; a process of each kind is killed at a random instant, one after the
other, and the sweep is resumed as a user would do it.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import bench
from tests.sweeps.kills import VICTIMS, Kills, killed_one_by_one
from tests.sweeps.swept import Swept


def main() -> None:
    """Kill, and print a row for each kind of process, and the sums."""
    given = bench.options(__doc__, kills=(50, "processes to kill"), seed=1)
    chance, rounds = random.Random(given.seed), list[Kills]()
    while sum(len(each.victims) for each in rounds) < given.kills:
        victims = chance.sample(list(VICTIMS.values()), len(VICTIMS))
        with TemporaryDirectory(prefix="perflab-kills-") as folder:
            # Services that run as another user must be able to pass.
            Path(folder).chmod(0o755)
            rounds.append(killed_one_by_one(Swept(Path(folder), []), victims, chance, retries=6))
        print(f"sweep {len(rounds)}: {rounds[-1]}", flush=True)
    counts = Counter(victim for each in rounds for victim in each.victims)
    bench.show([{"killed": kind, "times": counts[kind]} for kind in VICTIMS.values()])
    faults = [fault for each in rounds for fault in each.faults]
    bench.show([{
        "sweeps": len(rounds), "starts": sum(each.starts for each in rounds),
        "attempts": sum(each.attempts for each in rounds),
        "committed files": sum(each.files for each in rounds),
        "longest without a parent, s": f"{max(each.longest_s for each in rounds):.1f}",
        "faults": len(faults),
    }])  # fmt: skip
    raise SystemExit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
