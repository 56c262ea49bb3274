"""Claims 1, 3 and 4 of the inference study as shares of time, judged by rules fixed beforehand.

Each is measured in runs that hold "on", "off" and "no database write" in the same blocks, a share a
block, and estimated over blocks as any effect is (Hodges-Lehmann with the signed-rank interval from
6 blocks on, a t interval below). With X throughput and R mean response time of a closed loop:

=======  =====================================================  ====================================
claim    share                                                  holds where
=======  =====================================================  ====================================
1        1 - R(no write) / R(on): of the response time, what    more than half
         goes with the write
3        (1/X(on) - 1/X(off)) / (1/X(on) - 1/X(no write)): of   more than half
         the write's cost, what goes with waiting for the flush
4, CPU   with "on", the time that the cores which services may  less than 80%
         use were busy, with whatever ran on them
4, I/O   with "on", flush / (flush + core): of the time that    more than half
         backends waited for the flush and threads of services
         for a core, what was for the flush
=======  =====================================================  ====================================

They are judged by the rule of all verdicts (:mod:`perflab.analysis.verdict`), with the
limit of the claim in place of "no effect"; a published share enters where the load is the published
one. Claim 4 is shown where both its shares are.

Where the cores are full, but services alone would not fill them, other processes do: then claim 4
cannot be tested, for the services had to wait for cores that they might have had.

Waits for the flush are those of database backends (``pg_stat_activity``); waits for a core are of
threads, summed (:mod:`perflab.analysis.core_accounts`): both are seconds a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from perflab import systems
from perflab.analysis.core_accounts import service_cores
from perflab.analysis.evaluation import Finding, with_trials
from perflab.analysis.findings import JointClaim, joined
from perflab.analysis.noise import noise_flags
from perflab.analysis.users_elsewhere import active_counts, waits_for_flush
from perflab.analysis.verdict import (
    Limit,
    Outcome,
    Verdict,
    Way,
    judge,
)
from perflab.errors import PerflabError
from perflab.recordings import Contrast, Response, Run, UntilDecided, published_value
from perflab.statistics.comparison import effect_of
from perflab.statistics.in_words import counted
from perflab.systems.inference.published_load import COMMITS, STUDY_STUDY, TABLE, as_published

EXPERIMENT = FACTOR = "synchronous_commit"
LEVELS = ("on", "off", "none")
HALF, BUSY = 0.5, 0.8
CPU, IO = "claim 4, CPU", "claim 4, I/O"
# Of which shares each claim says something.
CLAIMS = {"claim 1": ("claim 1",), "claim 3": ("claim 3",), "claim 4": (CPU, IO)}
# And which levels each share is of.
LEVELS_OF = {"claim 1": ("on", "none"), "claim 3": LEVELS, CPU: ("on",), IO: ("on",)}


@dataclass(frozen=True)
class Share:
    """A claim about a share, before anything is measured."""

    name: str
    claim: str
    what: str
    response: str
    limit: float
    above: bool = True
    published: float | None = None

    def contrast(self, same_load: bool) -> Contrast:
        """Return what a verdict is on; ``same_load``: the published size is one at this load."""
        return Contrast(
            name=self.name,
            claim=self.claim,
            response=self.response,
            scale="difference",
            numerator={},
            denominator={},
            published_direction="greater" if self.above else "smaller",
            published_difference=self.published if same_load else None,
            source=f"inference study, {self.name}",
        )

    def finding(
        self,
        by_block: pd.Series[float],
        same_load: bool = False,
        rule: UntilDecided | None = None,
    ) -> Finding:
        """Judge the claim by its share in every block; NaN where a block lacks what it needs.

        ``rule`` is the run's, where blocks were added until all was decided.
        """
        known, contrast = by_block.dropna(), self.contrast(same_load)
        effect = None if known.empty else effect_of(by_block, scale="difference", rule=rule)
        verdict = judge(effect, contrast, limit=Limit(self.limit, f"{self.limit:.0%}"))
        holds = int(((known > self.limit) == self.above).sum())
        told = f"{verdict.reason}; it holds in {holds} of {counted(len(known), 'block')}"
        return Finding(
            contrast,
            Response(name=self.response, title=self.what),
            effect,
            replace(verdict, reason=told) if verdict.direction else verdict,
            blocks=tuple(int(block) for block in known.index),
            left_out=len(by_block) - len(known),
            limit=f"{'greater' if self.above else 'smaller'} than {self.limit:g}",
        )


def shares() -> tuple[Share, ...]:
    """Return the claims, with what was published of them."""
    on, off, none = (
        published_value(STUDY_STUDY, TABLE, COMMITS[level], "throughput") for level in LEVELS
    )
    before, after = (
        published_value(STUDY_STUDY, TABLE, COMMITS[level], "mean_latency")
        for level in ("on", "none")
    )
    return (
        Share(
            "claim 1",
            "database writes dominate end-to-end latency",
            "of the mean response time, what goes with the write",
            "write_share_of_response",
            HALF,
            published=1 - after / before,
        ),
        Share(
            "claim 3",
            "the commit's disk flush is the bottleneck",
            "of what the write costs, what goes with waiting for the flush",
            "flush_share_of_write",
            HALF,
            published=(1 / on - 1 / off) / (1 / on - 1 / none),
        ),
        Share(
            CPU,
            "the system is not bound by CPU",
            "of the time with commit on, when the services' cores were busy",
            "busy_share_of_cores",
            BUSY,
            above=False,
        ),
        Share(
            IO,
            "the system is bound by I/O",
            "of waiting for the flush or for a core with commit on, what is for the flush",
            "flush_share_of_waiting",
            HALF,
        ),
    )


def has_all_commits(run: Run) -> bool:
    """Return whether a run compares on, off and no database write."""
    levels = {item.levels.get(FACTOR) for item in run.record.treatments}
    return levels >= set(LEVELS)


def judged_claims(run: Run) -> dict[str, JointClaim]:
    """Return the claims with their verdicts, by name."""
    found = judged_shares(run)
    parts = {claim: [found[name] for name in names] for claim, names in CLAIMS.items()}
    return {claim: joined(findings) for claim, findings in parts.items()}


def judged_shares(run: Run) -> dict[str, Finding]:
    """Measure and judge each share on the valid trials of a run that has all three."""
    same_load = is_as_published(run)
    found = {
        share.name: share.finding(
            _WAYS[share.name](run), same_load=same_load, rule=run.record.until_decided
        )
        for share in shares()
    }
    if why := _filled_by_others(run, found[CPU]):
        for name in (CPU, IO):
            if found[name].verdict.direction is not Way.SHOWN:
                verdict = Verdict(Outcome.NOT_TESTABLE, why)
                found[name] = replace(found[name], verdict=verdict)
    noise = noise_flags(run)
    return {
        name: replace(with_trials(each, run, _treatments_of(run, name)), noise=noise)
        for name, each in found.items()
    }


def _treatments_of(run: Run, share: str) -> list[str]:
    levels = LEVELS_OF[share]
    return [name for level in levels for name in run.record.selected({FACTOR: level})]


def is_as_published(run: Run) -> bool:
    """Say whether the run is the durability study at the published load: sizes may be compared."""
    if run.record.experiment != EXPERIMENT:
        return False
    try:
        return as_published(systems.experiment(EXPERIMENT).check(run.record.parameters))
    except PerflabError:
        return False


def _filled_by_others(run: Run, busy: Finding) -> str:
    """Say who filled the cores where services alone would not have; empty where nobody else did."""
    if busy.verdict.direction is not Way.OPPOSITE or busy.effect is None:
        return ""
    (share,) = [each for each in shares() if each.name == CPU]
    own = share.finding(_of_services(run), rule=run.record.until_decided)
    if own.effect is None or own.verdict.direction is not Way.SHOWN:
        return ""
    return (
        f"other processes filled the services' cores: these were busy {busy.effect.estimate:.0%} "
        f"of the time, with the services alone {own.effect.estimate:.0%}"
    )


def _levels_by_block(run: Run, response: str) -> pd.DataFrame:
    """Return a response of the valid trials: a row per block, a column per level."""
    level = {item.name: item.levels.get(FACTOR, "") for item in run.record.treatments}
    trials = run.valid_trials()
    if response not in trials:
        trials = trials.assign(**{response: math.nan})
    wide = trials.assign(level=trials["treatment"].map(level)).pivot(
        index="block", columns="level", values=response
    )
    blocks = pd.RangeIndex(run.judged_blocks)
    return wide.reindex(index=blocks, columns=list(LEVELS)).astype(float)


def _of_the_write(run: Run) -> pd.Series[float]:
    means = _levels_by_block(run, "mean_ms")
    return 1 - means["none"] / means["on"]


def _of_the_flush(run: Run) -> pd.Series[float]:
    """Return the flush's share of the write's cost; NaN where the write cost nothing at all."""
    cost = 1 / _levels_by_block(run, "throughput_rps")
    write = cost["on"] - cost["none"]
    return ((cost["on"] - cost["off"]) / write).where(write > 0)


def _with_commit_on(run: Run) -> pd.DataFrame:
    names = run.record.selected({FACTOR: "on"})
    trials = run.valid_trials()
    return trials[trials["treatment"].isin(names)]


def _by_block(run: Run, trials: pd.DataFrame, values: list[float]) -> pd.Series[float]:
    found = pd.Series(values, index=trials["block"].to_numpy(), dtype=float)
    return found.reindex(pd.RangeIndex(run.judged_blocks))


def _of_the_cores(run: Run) -> pd.Series[float]:
    trials = _with_commit_on(run)
    cores = [f"core {core}" for core in service_cores(run.record)]
    samples = run.samples(list(trials["trial_id"]))
    values = []
    for row in trials.to_dict("records"):
        own = samples[samples["trial_id"] == row["trial_id"]]
        busy = [
            _busy_share(own[own["service"] == core], row["begin_ns"], row["end_ns"])
            for core in cores
        ]
        values.append(float(np.mean(busy)) if busy else math.nan)
    return _by_block(run, trials, values)


def _busy_share(own: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    """Return busy time over wall time of a core, by interpolating cumulative time."""
    if len(own) < 2 or end_ns <= begin_ns:
        return math.nan
    used = np.interp([begin_ns, end_ns], own["t_ns"].to_numpy(), own["cpu_ns"].to_numpy())
    return float((used[1] - used[0]) / (end_ns - begin_ns))


def _of_services(run: Run) -> pd.Series[float]:
    """Return the share of the cores that services themselves used; NaN without any account."""
    trials, cores = _with_commit_on(run), len(service_cores(run.record))
    columns = [name.replace("core_wait", "cpu") for name in _waits_for_core(trials)]
    if not columns or not cores:
        return _by_block(run, trials, [math.nan] * len(trials))
    used = trials[columns].astype(float).sum(axis=1, skipna=False) / cores
    return _by_block(run, trials, used.tolist())


def _waits_for_core(trials: pd.DataFrame) -> list[str]:
    """Return the columns with the scheduler's accounts of services."""
    names = [str(name) for name in trials.columns if str(name).startswith("core_wait_share_")]
    return [name for name in names if trials[name].notna().any()]


def _of_waiting(run: Run) -> pd.Series[float]:
    trials = _with_commit_on(run)
    counts = active_counts(run)
    columns = _waits_for_core(trials)
    values = []
    for row in trials.to_dict("records"):
        own = counts[counts["trial_id"] == row["trial_id"]]
        waiting = own["event"].map(waits_for_flush).astype(bool)
        flush = own.loc[waiting, "count"].sum() / own["looks"].iloc[0] if len(own) else math.nan
        core = sum(float(row[name]) for name in columns) if columns else math.nan
        values.append(flush / (flush + core) if flush + core > 0 else math.nan)
    return _by_block(run, trials, values)


_WAYS: Mapping[str, Callable[[Run], pd.Series[float]]] = {
    "claim 1": _of_the_write,
    "claim 3": _of_the_flush,
    CPU: _of_the_cores,
    IO: _of_waiting,
}
