"""Profiles: which functions a service's samples lie in, and what watched functions cost.

Samples of one trial are not independent (a slow batch is seen many times in a row), so shares are
taken per trial and their intervals over trials.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from perflab.errors import AnalysisError
from perflab.recordings import Run
from perflab.statistics.comparison import mean_interval
from perflab.statistics.quantiles import across_trials

SHOWN = 15
PERCENT = 100.0
CPU = "cpu_share_"
TOP = [
    "treatment", "function", "self %", "self low", "self high", "total %", "total low",
    "total high", "samples", "n",
]  # fmt: skip
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
    """The chains of one treatment over its valid trials.

    ``chains`` adds up the samples of every chain; ``own`` and ``total`` hold the share of samples
    in which a function is innermost, or anywhere (once, however deep it recurses), per trial: one
    row per trial, its block as the index, one column per function. ``seen_share`` is by block the
    share of the profiler's looks that found a thread running: samples over looks.
    """

    treatment: str
    label: str
    chains: Mapping[str, int]
    own: pd.DataFrame
    total: pd.DataFrame
    seen_share: pd.Series[Any]

    @property
    def samples(self) -> int:
        """Return the number of samples over all trials."""
        return sum(self.chains.values())


def profiled(run: Run) -> list[str]:
    """Return the names of the treatments that have chains, in the order of the record."""
    seen = set(run.calls()["treatment"])
    return [treatment.name for treatment in run.record.treatments if treatment.name in seen]


def profile_of(run: Run, treatment: str) -> Profile:
    """Return the profile of one treatment.

    Raises
    ------
    AnalysisError
        The treatment has no chains in a valid trial.
    """
    table = run.calls()
    table = table[table["treatment"] == treatment]
    if table.empty:
        known = ", ".join(profiled(run)) or "none of this run"
        raise AnalysisError(
            f"'{treatment}' has no profiled trial that is valid; there are: {known}"
        )
    own: dict[int, Counter[str]] = {}
    total: dict[int, Counter[str]] = {}
    for block, chain, samples in zip(table["block"], table["chain"], table["samples"], strict=True):
        frames = chain.split(";")
        own.setdefault(block, Counter())[frames[-1]] += samples
        every = total.setdefault(block, Counter())
        for frame in dict.fromkeys(frames):
            every[frame] += samples
    valid = run.valid_trials()
    valid = valid[valid["treatment"] == treatment].set_index("block")
    summed = table.groupby("chain")["samples"].sum().sort_index()
    whole = table.groupby("block")["samples"].sum()
    labels = {item.name: item.label for item in run.record.treatments}
    return Profile(
        treatment=treatment,
        label=labels.get(treatment) or treatment,
        chains={str(chain): int(count) for chain, count in summed.items()},
        own=_shares(own, whole),
        total=_shares(total, whole),
        seen_share=whole / valid["profiler_looks"].astype(float),
    )


def _shares(counts: Mapping[int, Counter[str]], whole: pd.Series[int]) -> pd.DataFrame:
    blocks = sorted(counts)
    wide = pd.DataFrame([counts[block] for block in blocks], index=pd.Index(blocks)).fillna(0.0)
    shares: pd.DataFrame = wide.div(whole, axis=0)
    return shares


def top_functions(run: Run, count: int = SHOWN) -> pd.DataFrame:
    """Return the functions with the largest self share of every profiled treatment.

    Columns: treatment (its label), function, ``self %`` and ``total %`` of the samples (typical
    value over trials) with their 95% intervals (NaN where n is too small), samples (in which the
    function is innermost, over all trials), n (trials).
    """
    rows = []
    for name in profiled(run):
        profile = profile_of(run, name)
        innermost = Counter[str]()
        for chain, samples in profile.chains.items():
            innermost[chain.rpartition(";")[2]] += samples
        # Equal counts are ordered by name, so that the same record gives the same table.
        largest = sorted(innermost, key=lambda function: (-innermost[function], function))
        rows += [
            {
                "treatment": profile.label,
                "function": function,
                **_typical("self", " %", PERCENT * profile.own[function]),
                **_typical("total", " %", PERCENT * profile.total[function]),
                "samples": innermost[function],
                "n": len(profile.own),
            }
            for function in largest[:count]
        ]
    return pd.DataFrame(rows, columns=TOP)


def function_shares(run: Run, count: int = SHOWN) -> pd.DataFrame:
    """Return how much of the time the largest functions take themselves, per profiled treatment.

    Columns: function, treatment (its name), ``percent`` of the time (samples in which the function
    is innermost over the profiler's looks: the mean over trials) with its 95% interval ``low`` to
    ``high`` (NaN where n is too small), trials. The functions are those with the largest share
    under any treatment, the largest first.
    """
    parts = {name: _percent_of_time(profile_of(run, name)) for name in profiled(run)}
    means = pd.DataFrame({name: own.mean() for name, own in parts.items()}).fillna(0.0)
    largest = means.max(axis=1).sort_index().sort_values(ascending=False, kind="stable")
    rows = [
        _share_row(str(function), name, own)
        for function in largest.index[:count]
        for name, own in parts.items()
    ]
    return pd.DataFrame(rows, columns=SHARES)


def _share_row(function: str, treatment: str, own: pd.DataFrame) -> dict[str, Any]:
    shares = own[function].to_numpy() if function in own else np.zeros(len(own))
    percent, low, high = float(shares.mean()), np.nan, np.nan
    if len(shares) > 1:
        interval = mean_interval(shares)
        percent, low, high = interval.estimate, interval.low, interval.high
    return dict(zip(SHARES, (function, treatment, percent, low, high, len(shares)), strict=True))


def _typical(name: str, unit: str, values: ArrayLike) -> dict[str, float]:
    """Return the typical value over trials and its interval, for columns that ``name`` begins."""
    found = across_trials(values)
    return {f"{name}{unit}": found.value, f"{name} low": found.low, f"{name} high": found.high}


def profile_check(run: Run) -> pd.DataFrame:
    """Return how much of the time the profiler saw a service run, beside its CPU.

    Columns: treatment (its label), looks and samples (over all trials), ``seen %`` of the looks
    that found a thread running and ``CPU %`` of a core by the sampler (typical values over trials
    with their 95% intervals), n (trials). Where the first is larger, the rest was waiting that the
    profiler takes for running: for the disk, or on the way into and out of a call to the kernel.
    """
    trials = run.valid_trials()
    rows = []
    for name in profiled(run):
        profile = profile_of(run, name)
        own = trials[(trials["treatment"] == name) & trials["profiler_looks"].notna()]
        cpu = own[CPU + str(own["profiler_node"].iloc[0])]
        rows.append(
            {
                "treatment": profile.label,
                "looks": int(own["profiler_looks"].sum()),
                "samples": profile.samples,
                **_typical("seen", " %", PERCENT * profile.seen_share),
                **_typical("CPU", " %", PERCENT * cpu),
                "n": len(profile.own),
            }
        )
    return pd.DataFrame(rows, columns=CHECK)


def _percent_of_time(profile: Profile) -> pd.DataFrame:
    return profile.own.mul(PERCENT * profile.seen_share.reindex(profile.own.index), axis=0).dropna()


def watched(run: Run) -> pd.DataFrame:
    """Return how much of the time every watched function takes, per profiled treatment.

    Columns: treatment (its label), watched (the name); ``share %`` of the samples with the
    function anywhere in their chain, and ``us`` of it per request or message, as the profiler was
    told to count: typical values over the valid trials with their 95% intervals (NaN where n is
    too small); n (trials). A function may hold another: shares do not add up.
    """
    rows = []
    for label, own in by_treatment(run):
        for name in watched_names(own):
            shares = own[f"profile_{name}_share"]
            rows.append(
                {
                    "treatment": label,
                    "watched": name,
                    **_typical("share", " %", PERCENT * shares),
                    **_typical("us", "", own[f"profile_{name}_us_per_message"]),
                    "n": int(shares.notna().sum()),
                }
            )
    return pd.DataFrame(rows, columns=WATCHED)


def by_treatment(run: Run) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield every treatment's label and its valid trials, in the order of the record."""
    trials = run.valid_trials()
    for treatment in run.record.treatments:
        yield treatment.label or treatment.name, trials[trials["treatment"] == treatment.name]


def watched_names(own: pd.DataFrame) -> list[str]:
    """Return what was watched in some of these trials."""
    found = [match[1] for column in own.columns if (match := WATCHED_SHARE.fullmatch(str(column)))]
    return [name for name in found if own[f"profile_{name}_share"].notna().any()]
