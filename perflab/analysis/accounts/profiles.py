"""Profiles: the functions that a service's samples lie in, and the cost of watched functions.

Samples of one trial are not independent (a slow batch is seen many times in a row), so shares are
computed per trial, and their intervals over trials.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from perflab.errors import AnalysisError
from perflab.recordings import Run
from perflab.statistics.mean_intervals import SMALLEST_SIGNED_RANK
from perflab.statistics.quantiles import across_trials, t_interval

MOST_FUNCTIONS = 15
PERCENT = 100.0
CPU = "cpu_share_"
CHECK = [
    "treatment", "looks", "samples", "seen %", "seen low", "seen high", "CPU %", "CPU low",
    "CPU high", "n",
]  # fmt: skip
SHARES = ["function", "treatment", "percent", "low", "high", "trials"]
WATCHED_SHARE = re.compile(r"profile_(.+)_share")
WATCHED = [
    "treatment", "watched", "share %", "share low", "share high", "us", "us low", "us high", "n",
]  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """The call chains of one treatment over its valid trials.

    ``samples`` is their number over all trials. ``self_share`` has a row per trial (the index is
    its block) and a column per function: the share of samples in which the function is innermost.
    ``seen_share`` is, by block, the share of the profiler's looks that found a thread running:
    samples over looks.
    """

    label: str
    samples: int
    self_share: pd.DataFrame
    seen_share: pd.Series[Any]


def profiled(run: Run) -> list[str]:
    """Return the names of the treatments with call chains, in the order of the record."""
    names = set(run.table("calls")["treatment"])
    return [treatment.name for treatment in run.record.treatments if treatment.name in names]


def profile_of(run: Run, treatment: str) -> Profile:
    """Return the profile of one treatment.

    Raises
    ------
    AnalysisError
        The treatment has no call chains in a valid trial.
    """
    table = run.table("calls")
    table = table[table["treatment"] == treatment]
    if table.empty:
        known = ", ".join(profiled(run)) or "none of this run"
        raise AnalysisError(
            f"treatment '{treatment}' has no valid profiled trial; those that have one: {known}"
        )
    innermost: dict[int, Counter[str]] = {}
    for block, chain, samples in zip(table["block"], table["chain"], table["samples"], strict=True):
        innermost.setdefault(block, Counter())[chain.rpartition(";")[2]] += samples
    valid = run.valid_trials()
    valid = valid[valid["treatment"] == treatment].set_index("block")
    whole = table.groupby("block")["samples"].sum()
    labels = {item.name: item.label for item in run.record.treatments}
    return Profile(
        label=labels.get(treatment) or treatment,
        samples=int(whole.sum()),
        self_share=_shares(innermost, whole),
        seen_share=whole / valid["profiler_looks"].astype(float),
    )


def _shares(counts: Mapping[int, Counter[str]], whole: pd.Series[int]) -> pd.DataFrame:
    blocks = sorted(counts)
    wide = pd.DataFrame([counts[block] for block in blocks], index=pd.Index(blocks)).fillna(0.0)
    shares: pd.DataFrame = wide.div(whole, axis=0)
    return shares


def function_shares(run: Run, count: int = MOST_FUNCTIONS) -> pd.DataFrame:
    """Return the share of time that the largest functions take themselves, per profiled treatment.

    Columns: function, treatment (its name), ``percent`` of the time (samples in which the function
    is innermost, over the profiler's looks; mean over trials) with its 95% interval ``low`` to
    ``high`` (NaN if n is too small), trials. The functions are those with the largest share in any
    treatment, the largest first.
    """
    tables = {name: _percent_of_time(profile_of(run, name)) for name in profiled(run)}
    means = pd.DataFrame({name: shares.mean() for name, shares in tables.items()}).fillna(0.0)
    largest = means.max(axis=1).sort_index().sort_values(ascending=False, kind="stable")
    rows = [
        _share_row(str(function), name, shares)
        for function in largest.index[:count]
        for name, shares in tables.items()
    ]
    return pd.DataFrame(rows, columns=SHARES)


def _share_row(function: str, treatment: str, table: pd.DataFrame) -> dict[str, Any]:
    shares = table[function].to_numpy() if function in table else np.zeros(len(table))
    # Equal values of a few trials are no certainty.
    is_known = len(shares) >= SMALLEST_SIGNED_RANK or np.ptp(shares) > 0
    low, high = t_interval(shares) if is_known else (np.nan, np.nan)
    values = (function, treatment, float(shares.mean()), low, high, len(shares))
    return dict(zip(SHARES, values, strict=True))


def _typical(name: str, unit: str, values: ArrayLike) -> dict[str, float]:
    """Return the typical value over trials and its interval, in columns named after ``name``."""
    estimate = across_trials(values)
    return {
        f"{name}{unit}": estimate.value,
        f"{name} low": estimate.low,
        f"{name} high": estimate.high,
    }


def profile_check(run: Run) -> pd.DataFrame:
    """Return the share of time that the profiler saw a service run, beside its CPU.

    Columns: treatment (its label), looks and samples (over all trials), ``seen %`` of the looks
    that found a thread running and ``CPU %`` of a core by the sampler (typical values over trials
    with their 95% intervals), n (trials). If ``seen %`` is larger, the difference is waiting that
    the profiler takes for running: for the disk, or in a call to the kernel.
    """
    trials = run.valid_trials()
    rows = []
    for name in profiled(run):
        profile = profile_of(run, name)
        of_treatment = trials[(trials["treatment"] == name) & trials["profiler_looks"].notna()]
        cpu = of_treatment[CPU + str(of_treatment["profiler_node"].iloc[0])]
        rows.append(
            {
                "treatment": profile.label,
                "looks": int(of_treatment["profiler_looks"].sum()),
                "samples": profile.samples,
                **_typical("seen", " %", PERCENT * profile.seen_share),
                **_typical("CPU", " %", PERCENT * cpu),
                "n": len(profile.self_share),
            }
        )
    return pd.DataFrame(rows, columns=CHECK)


def _percent_of_time(profile: Profile) -> pd.DataFrame:
    shares = profile.self_share
    return shares.mul(PERCENT * profile.seen_share.reindex(shares.index), axis=0).dropna()


def watched(run: Run) -> pd.DataFrame:
    """Return the share of time that every watched function takes, per profiled treatment.

    Columns: treatment (its label), watched (the name), ``share %`` of the samples with the function
    anywhere in their chain, its ``us`` per request or message (whichever the profiler counts), and
    n (trials). The values are typical values over the valid trials, with 95% intervals (NaN if n is
    too small). One function may call another, so shares do not add up.
    """
    trials, rows = run.valid_trials(), []
    for treatment in run.record.treatments:
        of_treatment = trials[trials["treatment"] == treatment.name]
        for column, shares in of_treatment.dropna(axis=1, how="all").items():
            match = WATCHED_SHARE.fullmatch(str(column))
            if match is None:
                continue
            rows.append(
                {
                    "treatment": treatment.label or treatment.name,
                    "watched": match[1],
                    **_typical("share", " %", PERCENT * shares),
                    **_typical("us", "", of_treatment[f"profile_{match[1]}_us_per_message"]),
                    "n": int(shares.notna().sum()),
                }
            )
    return pd.DataFrame(rows, columns=WATCHED)
