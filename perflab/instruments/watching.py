"""Watched functions: in how many samples of a profiled trial they are, and what that is in time."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import pandas as pd

from perflab.recordings import Remark


def watched_samples(chains: pd.DataFrame, watch: Mapping[str, str]) -> dict[str, int]:
    """Return the number of samples that have a watched frame anywhere in their chain, by name.

    Parameters
    ----------
    chains : DataFrame
        Columns chain (frames from the outermost on, separated by ``;``) and samples.
    watch : mapping
        Name to a regular expression that is searched for in each frame.

    A sample counts once, however many of its frames match: recursion takes no more time for it.
    """
    patterns = {name: re.compile(pattern) for name, pattern in watch.items()}
    found = dict.fromkeys(watch, 0)
    for chain, samples in zip(chains["chain"], chains["samples"], strict=True):
        frames = chain.split(";")
        for name, pattern in patterns.items():
            if any(map(pattern.search, frames)):
                found[name] += int(samples)
    return found


def watched_columns(
    found: Mapping[str, int], samples: int, rate_hz: float, units: int, unit: str = "request"
) -> dict[str, float]:
    """Return what a trial's row holds of its watched functions.

    Parameters
    ----------
    found : mapping
        Samples by watched name; see :func:`watched_samples`.
    samples : int
        All samples of the trial.
    rate_hz : float
        Looks per second: a sample stands for 1 / rate_hz seconds.
    units, unit : int, str
        What the trial's work is counted in, and how many there were.

    Returns
    -------
    dict
        ``profile_<name>_share`` of the samples and ``profile_<name>_us_per_<unit>``, NaN where the
        trial has no samples, or no units.
    """
    row: dict[str, float] = {}
    for name, count in found.items():
        row[f"profile_{name}_share"] = count / samples if samples else math.nan
        time_us = count / rate_hz * 1e6
        row[f"profile_{name}_us_per_{unit}"] = time_us / units if units else math.nan
    return row


def unseen(found: Mapping[str, int], watch: Mapping[str, str], samples: int) -> tuple[Remark, ...]:
    """Return a warning for every watched name that is in no sample."""
    return tuple(
        Remark(
            code="profiler.unseen",
            text=f"watched '{name}' is in none of {samples} samples: it takes less time than they "
            "can show (a higher rate_hz or longer trials show more), or no frame matches "
            f"'{watch[name]}'",
        )
        for name, count in found.items()
        if not count
    )
