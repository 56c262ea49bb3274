"""What logins cost: points of CPU while users join, over the cost of the password hash.

bcrypt does its work 2 to the power of its rounds times (N. Provos, D. Mazieres, USENIX ATC 1999),
so the CPU of a login is a + b 2^rounds, where a is all else of it. The study names neither its hash
nor its cost: the line says at how many rounds its 70 points would appear here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.analysis.methods.comparison import effect_of
from perflab.recordings import Run

COSTLY, FREE = "costly_logins", "free_logins"
CPU = "join_cpu_share_chat"
COLUMNS = ["treatment", "rounds", "points", "low", "high", "n"]
# Where users wait for a core, costlier logins take longer and no more of it.
FULL_POINTS = 90.0


@dataclass(frozen=True)
class LoginLine:
    """Points of CPU = a + b 2^rounds, over costs of which no one fills the core."""

    other_points: float
    per_work: float

    def points(self, rounds: np.ndarray) -> np.ndarray:
        """Return the points of CPU at numbers of rounds."""
        found: np.ndarray = self.other_points + self.per_work * 2.0**rounds
        return found

    def rounds_of(self, points: float) -> float:
        """Return at how many rounds logins take so many points; NaN where at none."""
        work = (points - self.other_points) / self.per_work if self.per_work > 0 else math.nan
        return math.log2(work) if work > 0 else math.nan


def costs_of_logins(run: Run) -> pd.DataFrame:
    """Return a row per cost of a login: how much CPU costly logins take above free ones.

    Columns: treatment (its name), rounds (of bcrypt), points (of a core, in percent, mean over
    blocks of the difference while users join) with its 95% interval (NaN below 2 blocks), n
    (blocks that have both).
    """
    shares = run.valid_trials().reindex(columns=["block", "treatment", CPU])
    by_block = shares.pivot_table(index="block", columns="treatment", values=CPU)
    names = {item.levels.get("rung", ""): item for item in run.record.treatments}
    rows = []
    for rung, item in names.items():
        if not rung.startswith(COSTLY) or FREE not in names or "bcrypt_rounds" not in item.levels:
            continue
        sides = by_block.reindex(columns=[item.name, names[FREE].name])
        points = 100 * (sides[item.name] - sides[names[FREE].name])
        points = points.reindex(pd.RangeIndex(run.judged_blocks))
        if points.isna().all():
            continue
        found = effect_of(points, scale="difference", rule=run.record.until_decided)
        rows.append({
            "treatment": item.name, "rounds": int(item.levels["bcrypt_rounds"]),
            "points": found.estimate, "low": found.low, "high": found.high, "n": found.n,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS).sort_values("rounds", ignore_index=True)


def login_line(costs: pd.DataFrame) -> LoginLine | None:
    """Return the line through costs of logins; None with fewer than three below a full core.

    Least squares with weights of 1 / points: what counts is how far off it is in proportion.
    """
    own = costs[(costs["points"] > 0) & (costs["points"] < FULL_POINTS)]
    if len(own) < 3:
        return None
    points = own["points"].to_numpy(float)
    slope, other = np.polyfit(2.0 ** own["rounds"].to_numpy(float), points, 1, w=1 / points)
    return LoginLine(float(other), float(slope))
