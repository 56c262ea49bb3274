"""Two treatments paired round by round: slices that take turns, or a duet.

In slices (randomised multiple interleaved trials; A. Abedi, T. Brecht, ICPE 2017) all treatments
are resident and each has a turn of some hundred ms in every round. In a duet (L. Bulej, V. Horky,
P. Tuma, F. Farquet, A. Prokopec, ICPE companion 2020) two run at the same time. Either pairs what
is less than a second apart, so that the drift of the machine leaves the ratio alone.

What pairing cannot take away is what a process has for as long as it lives: copies of one program
differ by 1 to 2%. Rounds of one start tell of these very processes. A statement about the
treatments needs several starts, and these are then the witnesses: each gives one ratio, the mean of
its rounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from perflab.analysis.methods.comparison import CONFIDENCE, Effect, effect_of
from perflab.analysis.methods.serial import degrees_of, mean_of_series, standard_error
from perflab.errors import AnalysisError

THESE_PROCESSES = (
    "one start of the services: the interval is about these very processes, and copies of one "
    "program differ by 1 to 2% for as long as they live; start them several times"
)


def ratios_of_rounds(numerator: ArrayLike, denominator: ArrayLike) -> np.ndarray:
    """Return the log ratio of each round, shape (rounds,).

    A round in which a side has no value (NaN) is left out.

    Raises
    ------
    AnalysisError
        The sides have not the same rounds, or a value is not positive.
    """
    above, below = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    if above.shape != below.shape:
        raise AnalysisError(f"{len(above)} rounds on one side and {len(below)} on the other")
    known = ~(np.isnan(above) | np.isnan(below))
    if not ((above[known] > 0) & (below[known] > 0)).all():
        raise AnalysisError(
            "a round has nothing on one side, and a ratio needs positive values: lengthen the "
            "slices or raise the load"
        )
    found: np.ndarray = np.log(above[known] / below[known])
    return found


def effect_of_starts(starts: Sequence[np.ndarray], confidence: float = CONFIDENCE) -> Effect:
    """Return the ratio of two treatments from the log ratios of rounds, one array per start.

    Several starts of the services are compared as blocks are: by their means
    (:func:`perflab.analysis.methods.comparison.effect_of`). Of a single one the interval is that of
    its series of rounds (:func:`perflab.analysis.methods.serial.mean_of_series`), and a warning
    says of what it holds.

    Raises
    ------
    AnalysisError
        There is no start; or a single one with fewer than 20 rounds.
    """
    if not starts:
        raise AnalysisError("there is no start of the services to compare")
    if len(starts) > 1:
        return effect_of(pd.Series([float(np.mean(rounds)) for rounds in starts]), confidence)
    rounds = np.asarray(starts[0], dtype=float)
    wide, narrow = (mean_of_series(rounds, each) for each in (confidence, 2 * confidence - 1))
    error = standard_error(rounds)
    t = abs(wide.estimate) / error if error else math.inf * abs(wide.estimate or 1)
    return Effect(
        math.exp(wide.estimate), math.exp(wide.low), math.exp(wide.high), confidence, len(rounds),
        float(2 * stats.t.sf(t, degrees_of(len(rounds)))), wide.method, (THESE_PROCESSES,),
        by_block=tuple(rounds.tolist()), narrow_low=math.exp(narrow.low),
        narrow_high=math.exp(narrow.high), narrow_confidence=narrow.confidence,
    )  # fmt: skip


def cpu_per_request_us(
    cpu_ns: ArrayLike,
    finished: ArrayLike,
    awake_s: ArrayLike,
    loaded_s: ArrayLike,
    idle_share: float,
) -> np.ndarray:
    """Return a service's CPU time per request in each round, in us; NaN where none was finished.

    Outside of its own windows a service has nothing to do: it is paused, or sleeps. So all CPU that
    it used over a round belongs to the requests of its own windows, those of the part that settles
    and those that ended after it included; but for what it also does without load, while it is
    awake and its window is not open. That share is measured while nothing is sent.

    Parameters
    ----------
    cpu_ns : array_like
        CPU time of the service over each whole round.
    finished : array_like
        Successes of its windows in the round, all of them (``finished`` of
        :func:`perflab.load.by_window.window_table`).
    awake_s, loaded_s : array_like
        For how long in the round it was not paused, and for how long its window was open.
    idle_share : float
        CPU per time of the service without load, as a share of a core.
    """
    idle_ns = np.maximum(np.subtract(awake_s, loaded_s), 0) * 1e9 * idle_share
    own_us = np.maximum(np.asarray(cpu_ns, dtype=float) - idle_ns, 0) / 1e3
    numbers = np.asarray(finished, dtype=float)
    found: np.ndarray = np.full(own_us.shape, math.nan)
    np.divide(own_us, numbers, out=found, where=numbers > 0)
    return found
