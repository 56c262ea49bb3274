"""Claims 1, 3 and 4 of the inference study as shares of time, judged by rules fixed beforehand.

A run with "on", "off" and "no database write" in the same blocks gives one value of each share per
block; over blocks a share is estimated as any effect is. With throughput X and mean response time R
of a closed loop:

=======  =====================================================  ====================================
claim    share                                                  holds if the share is
=======  =====================================================  ====================================
1        1 - R(no write) / R(on): the part of the response      more than half
         time that goes with the write
3        (1/X(on) - 1/X(off)) / (1/X(on) - 1/X(no write)): the  more than half
         part of the write's cost that goes with waiting for
         the flush
4, CPU   with "on", the time in which the cores that services   less than 80%
         may use were busy, with any process
4, I/O   with "on", flush / (flush + core), where backends      more than half
         wait for the flush and threads of services for a core
=======  =====================================================  ====================================

The rule of all verdicts applies (:mod:`perflab.analysis.verdict`), with the limit of the claim in
place of "no effect"; a published share enters if the load is the published one. If the cores are
full, but services alone would not fill them, claim 4 cannot be tested: services had to wait for
cores that they could have had. Waits are of database backends (``pg_stat_activity``) and of threads
(:mod:`perflab.analysis.core_accounts`), in seconds a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from perflab import systems
from perflab.analysis.commit_waits import active_counts, waits_for_flush
from perflab.analysis.core_accounts import service_cores
from perflab.analysis.evaluation import Finding, with_trials
from perflab.analysis.findings import JointClaim, joined
from perflab.analysis.noise import noise_flags
from perflab.analysis.results import AgainstStudy, Verdict
from perflab.analysis.starts import effect_of_run
from perflab.analysis.verdict import Limit, judge, without_effect
from perflab.errors import PerflabError
from perflab.recordings import Contrast, Response, Run, published_value
from perflab.statistics.comparison import effect_of
from perflab.statistics.in_words import as_share, counted
from perflab.systems.inference.stacks import COMMITS, STUDY, TABLE
from perflab.trials.experiment import PresetParameters
from perflab.trials.summary import cpu_share

EXPERIMENT = FACTOR = "synchronous_commit"
LEVELS = ("on", "off", "none")
HALF, BUSY = 0.5, 0.8
CPU, IO = "claim 4, CPU", "claim 4, I/O"
# The shares that each claim is about.
CLAIMS = {"claim 1": ("claim 1",), "claim 3": ("claim 3",), "claim 4": (CPU, IO)}
# The levels that each share is measured on.
LEVELS_OF = {"claim 1": ("on", "none"), "claim 3": LEVELS, CPU: ("on",), IO: ("on",)}


@dataclass(frozen=True)
class Share:
    """A claim about a share of time; ``above``: the share is claimed to exceed the limit."""

    name: str
    claim: str
    what: str
    response: str
    limit: float
    above: bool = True
    published: float | None = None

    def finding(
        self, by_block: pd.Series[float], same_load: bool = False, run: Run | None = None
    ) -> Finding:
        """Judge the claim by its share in every block; NaN if a block lacks a valid trial.

        ``same_load``: the load is the published one. ``run`` tells which blocks share a start.
        """
        contrast = Contrast(
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
        values = by_block.dropna()
        effect = None
        if not values.empty and run is not None:
            effect = effect_of_run(run, by_block, scale="difference")
        elif not values.empty:
            effect = effect_of(by_block, scale="difference")
        verdict = without_effect(contrast, "no usable block")
        if effect is not None:
            verdict = judge(effect, contrast, limit=Limit(self.limit, f"{self.limit:.0%}"))
            holds = int(((values > self.limit) == self.above).sum())
            of = counted(len(values), "block")
            verdict = replace(verdict, reason=f"{verdict.reason}; it holds in {holds} of {of}")
        return Finding(
            contrast,
            Response(name=self.response, title=self.what),
            effect,
            verdict,
            blocks=tuple(int(block) for block in values.index),
            left_out=len(by_block) - len(values),
            limit=f"{contrast.published_direction} than {as_share(self.limit)}",
        )


def shares() -> tuple[Share, ...]:
    """Return the claims with their published shares."""
    on, off, none = (
        published_value(STUDY, TABLE, COMMITS[level], "throughput") for level in LEVELS
    )
    before, after = (
        published_value(STUDY, TABLE, COMMITS[level], "mean_latency") for level in ("on", "none")
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
    """Return whether a run compares on, off and no database write, under one load."""
    levels = [treatment.levels.get(FACTOR) for treatment in run.record.treatments]
    return set(LEVELS) <= set(levels) and "rate" not in run.record.factors


def judged_claims(run: Run) -> dict[str, JointClaim]:
    """Return the claims with their verdicts, by name."""
    findings = judged_shares(run)
    return {claim: joined([findings[name] for name in names]) for claim, names in CLAIMS.items()}


def judged_shares(run: Run) -> dict[str, Finding]:
    """Measure and judge each share on the valid trials of a run that has all three levels."""
    same_load = is_as_published(run)
    findings = {
        share.name: share.finding(_SHARE_BY_BLOCK[share.name](run), same_load, run)
        for share in shares()
    }
    if reason := _filled_by_others(run, findings[CPU]):
        for name in (CPU, IO):
            if not findings[name].verdict.is_shown:
                verdict = Verdict(AgainstStudy.NOT_TESTABLE, reason)
                findings[name] = replace(findings[name], verdict=verdict)
    noise = noise_flags(run)
    judged = {}
    for name, finding in findings.items():
        levels = LEVELS_OF[name]
        names = [item.name for item in run.record.treatments if item.levels[FACTOR] in levels]
        judged[name] = replace(with_trials(finding, run, names), noise=noise)
    return judged


def is_as_published(run: Run) -> bool:
    """Return whether the run is the durability study at the published load."""
    if run.record.experiment != EXPERIMENT:
        return False
    try:
        parameters = systems.experiment(EXPERIMENT).check(run.record.parameters)
    except PerflabError:
        return False
    return isinstance(parameters, PresetParameters) and not parameters.differences()


def _filled_by_others(run: Run, busy: Finding) -> str:
    """Return that other processes filled the cores, or an empty string if they did not."""
    if busy.verdict.result is not AgainstStudy.OTHER_WAY or busy.effect is None:
        return ""
    share = next(share for share in shares() if share.name == CPU)
    of_services = share.finding(_services_share_of_cores(run), run=run)
    if of_services.effect is None or not of_services.verdict.is_shown:
        return ""
    return (
        "other processes filled the services' cores: the cores were busy "
        f"{as_share(busy.effect.estimate)} of the time, but services used only "
        f"{as_share(of_services.effect.estimate)} of it"
    )


def _levels_by_block(run: Run, response: str) -> pd.DataFrame:
    """Return a response of the valid trials: a row per block, a column per level."""
    level = f"factor_{FACTOR}"
    trials = run.valid_trials().reindex(columns=["block", level, response])
    wide = trials.pivot(index="block", columns=level, values=response)
    blocks = pd.RangeIndex(run.judged_blocks)
    return wide.reindex(index=blocks, columns=list(LEVELS)).astype(float)


def _write_share(run: Run) -> pd.Series[float]:
    means = _levels_by_block(run, "mean_ms")
    return 1 - means["none"] / means["on"]


def _flush_share_of_write(run: Run) -> pd.Series[float]:
    """Return the flush's share of the write's cost; NaN if the write cost nothing."""
    time_per_request = 1 / _levels_by_block(run, "throughput_rps")
    write = time_per_request["on"] - time_per_request["none"]
    return ((time_per_request["on"] - time_per_request["off"]) / write).where(write > 0)


def _with_commit_on(run: Run) -> pd.DataFrame:
    trials = run.valid_trials()
    return trials[trials["treatment"].isin(run.record.selected({FACTOR: "on"}))]


def _by_block(run: Run, trials: pd.DataFrame, values: list[float]) -> pd.Series[float]:
    by_block = pd.Series(values, index=trials["block"].to_numpy(), dtype=float)
    return by_block.reindex(pd.RangeIndex(run.judged_blocks))


def _busy_share_of_cores(run: Run) -> pd.Series[float]:
    trials = _with_commit_on(run)
    cores = [f"core {core}" for core in service_cores(run.record)]
    samples = run.table("samples", list(trials["trial_id"]))
    values = []
    for row in trials.to_dict("records"):
        of_trial = samples[samples["trial_id"] == row["trial_id"]]
        busy = [
            cpu_share(of_trial[of_trial["service"] == core], row["begin_ns"], row["end_ns"])
            for core in cores
        ]
        values.append(float(np.mean(busy)) if busy else math.nan)
    return _by_block(run, trials, values)


def _services_share_of_cores(run: Run) -> pd.Series[float]:
    """Return the share of the cores that services used; NaN without the scheduler's accounts."""
    trials, cores = _with_commit_on(run), len(service_cores(run.record))
    columns = [name.replace("core_wait", "cpu") for name in _waits_for_core(trials)]
    if not columns or not cores:
        return _by_block(run, trials, [math.nan] * len(trials))
    used = trials[columns].astype(float).sum(axis=1, skipna=False) / cores
    return _by_block(run, trials, used.tolist())


def _waits_for_core(trials: pd.DataFrame) -> list[str]:
    """Return the columns of services' waits for a core that have values."""
    names = [str(name) for name in trials.columns if str(name).startswith("core_wait_share_")]
    return [name for name in names if trials[name].notna().any()]


def _flush_share_of_waiting(run: Run) -> pd.Series[float]:
    trials, counts = _with_commit_on(run), active_counts(run)
    columns = _waits_for_core(trials)
    values = []
    for row in trials.to_dict("records"):
        of_trial = counts[counts["trial_id"] == row["trial_id"]]
        waiting = of_trial["event"].map(waits_for_flush).astype(bool)
        looks = of_trial["looks"].iloc[0] if len(of_trial) else math.nan
        flush = of_trial.loc[waiting, "count"].sum() / looks
        core = sum(float(row[name]) for name in columns) if columns else math.nan
        values.append(flush / (flush + core) if flush + core > 0 else math.nan)
    return _by_block(run, trials, values)


_SHARE_BY_BLOCK: Mapping[str, Callable[[Run], pd.Series[float]]] = {
    "claim 1": _write_share,
    "claim 3": _flush_share_of_write,
    CPU: _busy_share_of_cores,
    IO: _flush_share_of_waiting,
}
