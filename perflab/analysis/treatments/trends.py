"""One effect over many runs: series of runs that may stand together, and where their level shifts.

The unit is the run: one number each, however many blocks it has. Runs that ran on unlike machines
or backends, or asked with other parameters, are series of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.analysis.curves.shifts import ENOUGH, level_shifts
from perflab.analysis.methods.two_samples import wider_t
from perflab.numerals import counted

KEYS = ["contrast", "backend", "machine_id", "question_id"]
COLUMNS = [
    "run", "created_at", "commit", "dirty", "code", "effect", "low", "high", "n", "verdict",
]  # fmt: skip


@dataclass(frozen=True)
class LevelChange:
    """A change of an effect's level between two runs of a series.

    ``place`` is that of the first run after it in the series' table. ``size`` is the level after it
    over that before it (differences: minus), each over the runs up to the next change, with a 95%
    t interval; ``before`` and ``after`` count those runs. The place was chosen by the same runs, so
    that the size is rather too large than too small.
    """

    place: int
    p_value: float
    size: float
    low: float
    high: float
    before: int
    after: int


@dataclass(frozen=True)
class Series:
    """The runs of one effect that may stand together, oldest first, and its changes.

    ``table`` has a row per run: the effect with its interval, blocks (``n``) and commit.
    ``without`` counts runs that have no number for it.
    """

    contrast: str
    claim: str
    response: str
    scale: str
    unit: str
    backend: str
    machine_id: str
    question_id: str
    table: pd.DataFrame
    without: int
    changes: tuple[LevelChange, ...]

    @property
    def enough(self) -> bool:
        """Whether a change could be found at all."""
        return len(self.table) >= ENOUGH

    def said(self) -> str:
        """Return in a sentence whether it changed, or why that cannot be told."""
        runs = counted(len(self.table), "run")
        if not self.enough:
            verb = "is" if len(self.table) == 1 else "are"
            return f"{runs} {verb} too few to test for a change (it takes {ENOUGH})"
        if not self.changes:
            return f"no change is shown over {runs}"
        return f"{counted(len(self.changes), 'change')} over {runs}"

    def changed(self, factor: float) -> bool:
        """Return whether its level changed by a factor or more; never of differences.

        Either way: of a ratio of two treatments nobody can say which way is worse.
        """
        reach = math.log(factor)
        return self.scale == "ratio" and any(
            abs(math.log(each.size)) >= reach for each in self.changes
        )


def series_of(effects: pd.DataFrame) -> list[Series]:
    """Return the series of rows of effects (:func:`perflab.effects`), sorted by their names.

    Parameters
    ----------
    effects : DataFrame
        A row per run and contrast, with the runs' facts, oldest first.
    """
    return [_series(own) for _, own in effects.groupby(KEYS, sort=True)]


def _series(own: pd.DataFrame) -> Series:
    first = own.iloc[-1]
    has_number = own["effect"].notna() & (own["bound"] == "")
    table = own.loc[has_number, COLUMNS].reset_index(drop=True)
    texts = {name: str(first[name]) for name in ("claim", "response", "scale", "unit", *KEYS)}
    values = table["effect"].to_numpy(float)
    is_ratio = texts["scale"] == "ratio"
    return Series(
        **texts,
        table=table,
        without=int((~has_number).sum()),
        changes=_changes(np.log(values) if is_ratio else values, is_ratio),
    )


def _changes(x: np.ndarray, is_ratio: bool) -> tuple[LevelChange, ...]:
    """Return the changes of a series of log ratios, or of differences."""
    found = level_shifts(x)
    ends = [0, *(shift.place for shift in found), len(x)]
    return tuple(
        _change(shift.place, shift.p_value, x[begin : shift.place], x[shift.place : end], is_ratio)
        for shift, begin, end in zip(found, ends, ends[2:], strict=False)
    )


def _change(
    place: int, p_value: float, before: np.ndarray, after: np.ndarray, is_ratio: bool
) -> LevelChange:
    # Differences have a unit, and may be thousands of it: no power of e.
    unit = 1.0 if is_ratio else float(np.abs([*before, *after]).max()) or 1.0
    sizes = wider_t(after / unit, before / unit)[:3]
    size, low, high = sizes if is_ratio else (unit * math.log(each) for each in sizes)
    return LevelChange(place, p_value, size, low, high, len(before), len(after))
