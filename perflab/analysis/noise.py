"""How noisy the machine was during a run: facts, each with a flag where it may have mattered.

No trial is dropped because of noise: blocks, intervals and the generator's self-check deal with it.
The report tells a reader where to look if intervals are wide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from perflab.analysis.doubts.block_trend import BlockTrend, block_trend
from perflab.analysis.starts import has_one_start
from perflab.recordings import Run
from perflab.recordings.responses import OF_ALL
from perflab.recordings.run import once_per_record
from perflab.recordings.switches import SWITCHES
from perflab.statistics.cumulative import used_ns
from perflab.statistics.in_words import as_share, counted, number

NOISE_COLUMNS = ["what", "value", "flag"]
MAX_STEAL_SHARE = 0.01
MAX_FOREIGN_SHARE = 0.05
# From this share on an answer is about a loaded machine, and is marked; a browser stays below it.
LOADED = 0.25
# Remarks that make answers doubtful: a service answers faster in its turns than in a load without
# breaks; one side alone works after its start, while nobody asks.
RESTED, STARTING = "turns.rested", "stack.still_starting"
DOUBTS = (RESTED, STARTING)
MAX_FLUSH_DRIFT = 1.5
MAX_SPEED_DRIFT = 1.1
MAX_INVALID_SHARE = 0.1
# By at least so much the first of so many blocks must differ.
MAX_FIRST_BLOCK, LEAST_BLOCKS = 1.2, 4
SPEED, RESPONSE = "cpu_probe_before_ms", "mean_ms"
# 100 ticks of 10 ms, enough to measure a share of a few percent.
SMALLEST_MEASURED_NS = 1e9
UNKNOWN = "this machine does not report it"


class Fact(NamedTuple):
    """One kind of noise.

    ``flag`` says what the noise may have done, and ``brief`` says it in a few words beside
    verdicts; both are empty if there is nothing to say.
    """

    what: str
    value: str
    flag: str = ""
    brief: str = ""


def _flagged(what: str, value: str, wrong: bool, flag: str, brief: str) -> Fact:
    """Return a fact, with its flag if something is wrong."""
    return Fact(what, value, flag, brief) if wrong else Fact(what, value)


def noise_report(run: Run) -> pd.DataFrame:
    """Return the facts about the machine's noise during a run.

    Columns: what, value (text with its unit), flag (empty if there is nothing to say).
    """
    return pd.DataFrame([fact[: len(NOISE_COLUMNS)] for fact in _facts(run)], columns=NOISE_COLUMNS)


def noise_flags(run: Run) -> tuple[str, ...]:
    """Return the flags of :func:`noise_report` in a few words each: ``speed changed 1.5x``.

    Trials that do not count have no flag here: every verdict states the number of valid trials.
    """
    return tuple(fact.brief for fact in _facts(run) if fact.brief)


def _facts(run: Run) -> Iterator[Fact]:
    trials = run.current_trials()
    yield from _machine(run.record.environment)
    yield from _cores(run.record.placement)
    yield from _of_trials(trials)
    if trend := block_trend(run):
        yield _trending(trend)
    else:
        yield from _first_block(trials)
    yield from _foreign(run)


def _machine(environment: dict[str, Any]) -> Iterator[Fact]:
    for name, (what, good, effect, _) in SWITCHES.items():
        value = str(environment.get(name, "unknown"))
        # An unknown one is no fault.
        if value == "unknown":
            yield Fact(what, UNKNOWN)
        else:
            yield _flagged(what, value, value not in good, effect, f"{what} {value}")


def _cores(placement: dict[str, Any]) -> Iterator[Fact]:
    """Yield what shares cores: a client on a core of a service slows that service down."""
    client = {*(placement.get("client") or ())}
    measured = {
        core for role in ("services", "database", "link") for core in placement.get(role) or ()
    }
    together = bool(client & measured)
    if together or placement.get("shared"):
        yield _flagged(
            "cores",
            str(placement.get("shared") or "the client has no core of its own"),
            together,
            "the client takes time from what it measures",
            "client and services share a core",
        )


def _of_trials(trials: pd.DataFrame) -> Iterator[Fact]:
    total = len(trials)
    if not total:
        yield Fact("trials", "none", "nothing was measured")
        return
    bad = int((trials["state"] != "valid").sum())
    yield Fact(
        "trials that do not count",
        f"{bad} of {total}",
        "see their reasons" if bad > MAX_INVALID_SHARE * total else "",
    )
    yield from _steal(trials)
    speed, flush = ("CPU-speed probe", "ms", "speed"), ("disk flush, median", "us", "flush cost")
    yield from _drift(trials, SPEED, speed, MAX_SPEED_DRIFT)
    yield from _drift(trials, "flush_p50_us", flush, MAX_FLUSH_DRIFT)
    yield from _priority(trials["client_real_time"])


def _trending(trend: BlockTrend) -> Fact:
    what = "its rows or files stay" if trend.writing else "files, a database, a service not afresh"
    why = (
        f"{trend.cause}: {what}, so every block measures another state, and the faster variant may "
        "measure a larger one; let each variant start with a fresh copy of its data"
    )
    brief = f"{trend.text}, in all treatments: {trend.cause}"
    return Fact("from block to block", trend.text, why, brief)


def _first_block(trials: pd.DataFrame) -> Iterator[Fact]:
    """Yield whether all treatments were slower, or faster, in the first block than in any other."""
    valid = trials[trials["state"] == "valid"]
    times = valid.pivot_table(index="block", columns="treatment", values=RESPONSE).dropna()
    if len(times) < LEAST_BLOCKS or times.index[0] != 0 or times.shape[1] < 2:
        return
    first, others = times.iloc[0], times.iloc[1:]
    factor = float((first / others.median()).min())
    if (first < others.min()).all():
        factor = float((first / others.median()).max())
    elif not (first > others.max()).all():
        return
    if max(factor, 1 / factor) < MAX_FIRST_BLOCK:
        return
    brief = f"block 1 took {number(factor)} times as long as the others, in all treatments"
    why = "something outlives the start of services (their files, a cache) and was new then"
    yield Fact("first block", f"{number(factor)} times the response time of the others", why, brief)


def _priority(real_time: pd.Series[Any]) -> Iterator[Fact]:
    real_time = real_time[real_time >= 0]
    if len(real_time):
        ordinary = int(np.count_nonzero(real_time.to_numpy() == 0))
        some = f"ordinary in {ordinary} of {counted(len(real_time), 'trial')}"
        yield _flagged(
            "client's priority",
            some if ordinary else "real-time",
            bool(ordinary),
            "other processes may delay it; root or CAP_SYS_NICE lets it go first",
            "client without real-time priority",
        )


def _drift(
    trials: pd.DataFrame, column: str, names: tuple[str, str, str], most: float
) -> Iterator[Fact]:
    """Yield how much the medians of the blocks differ; ``names``: what, its unit, in brief."""
    what, unit, brief = names
    blocks = trials.groupby("block")[column].median()
    blocks = blocks[np.isfinite(blocks) & (blocks > 0)]
    if not len(blocks):
        return
    low, high = float(blocks.min()), float(blocks.max())
    yield _flagged(
        f"{what}, by block",
        f"{number(low)} to {number(high)} {unit}",
        high / low > most,
        f"it changed by a factor of {high / low:.2g} during the run",
        f"{brief} changed {high / low:.2g}x",
    )


def _steal(trials: pd.DataFrame) -> Iterator[Fact]:
    """Yield the stolen share of all measured time, which the kernel counts in ticks of 10 ms."""
    spans = (trials["end_ns"] - trials["begin_ns"]).to_numpy(float)
    shares = trials["steal_share"].to_numpy(float)
    known = np.isfinite(shares) & (spans > 0)
    if known.any():
        share = float(np.average(shares[known], weights=spans[known]))
        yield _flagged(
            "CPU stolen by the host",
            f"{as_share(share, 1)} of the measured time",
            share > MAX_STEAL_SHARE,
            "other guests took CPU time",
            f"other guests took {as_share(share)} of the CPU (steal)",
        )


def _foreign(run: Run) -> Iterator[Fact]:
    if _has_target_here(run):
        yield Fact("others on the lab's cores", "unknown: the lab did not start a service here")
    share = share_of_others(run)
    if math.isnan(share):
        return
    yield _flagged(
        "others on the lab's cores",
        f"{as_share(share, 1)} of their measured time",
        share > MAX_FOREIGN_SHARE,
        "other processes ran there (interrupts count too)",
        f"others used {as_share(share)} of the cores",
    )


def is_loaded(run: Run) -> bool:
    """Return whether others used so much of the cores that a run is about a loaded machine."""
    return share_of_others(run) > LOADED


def doubt(run: Run) -> str:
    """Return why the answers of a run are doubtful, and what to do; empty if nothing is known."""
    doubts = []
    if is_loaded(run):
        share = as_share(share_of_others(run))
        text = f"others used {share} of the cores meanwhile: repeat it on a quiet machine"
        doubts.append(text)
    doubts += [remark.text for remark in run.record.warnings if remark.code in DOUBTS]
    if run.record.blocks > 1 and has_one_start(run):
        doubts.append(
            "the services started once, and another start may differ by 1 to 2%: repeat it with "
            "fresh_blocks=1"
        )
    return "; ".join(doubts)


@once_per_record
def share_of_others(run: Run) -> float:
    """Return the share of the lab's cores that went to processes of others; NaN if unknown.

    The share is over all trials together: the kernel counts a core's busy time in ticks of 10 ms,
    too coarse for one short trial. Where a load went to a service on this machine that the lab did
    not start, the CPU of this service cannot be told from that of others.
    """
    if _has_target_here(run):
        return math.nan
    trials = run.current_trials()
    cores = {
        core
        for role, role_cores in run.record.placement.items()
        if role != "shared" and isinstance(role_cores, list | tuple)
        for core in role_cores
    }
    foreign_ns = measured_ns = 0.0
    trials = trials[trials["state"] != "failed"]
    samples = run.table("samples", trials["trial_id"].tolist())
    by_trial = dict(tuple(samples.groupby("trial_id")))
    # What ran at the same time: the trials of a block, or each alone.
    at_once = trials.groupby("block" if run.record.shares_time else "trial_id", sort=False)
    for _, together in at_once:
        begin_ns, end_ns = int(together["begin_ns"].min()), int(together["end_ns"].max())
        of_trials = {name: by_trial[name] for name in together["trial_id"] if name in by_trial}
        trials_ns = _foreign_ns(of_trials, begin_ns, end_ns, cores)
        if math.isfinite(trials_ns):
            foreign_ns += trials_ns
            measured_ns += (end_ns - begin_ns) * len(cores)
    if measured_ns < SMALLEST_MEASURED_NS:
        return math.nan
    return max(0.0, foreign_ns / measured_ns)


def _has_target_here(run: Run) -> bool:
    record = run.record
    keys = {item.parts["target"] for item in record.treatments if "target" in item.parts}
    return any(record.parts[key].get("is_here", True) for key in keys)


def _foreign_ns(
    samples_of_trials: Mapping[str, pd.DataFrame], begin_ns: int, end_ns: int, cores: set[int]
) -> float:
    """Return the placed cores' busy time minus the lab's in the measured stage; NaN if unknown.

    Each of the simultaneous trials has samples of its own services and client; the samples of every
    trial hold the cores and the lab.
    """
    if not cores or not end_ns > begin_ns:
        return math.nan
    busy_ns: dict[str, float] = {}
    lab_ns: dict[str, float] = {}
    elsewhere_ns: dict[str, float] = {}
    shared_ns: dict[str, float] = {}
    for trial, samples in samples_of_trials.items():
        for name, of_service in samples.groupby("service"):
            cpu_ns = used_ns(of_service, "cpu_ns", begin_ns, end_ns)
            if str(name).startswith("core "):
                # The samples have every core of the machine.
                is_placed = int(str(name).removeprefix("core ")) in cores
                (busy_ns if is_placed else elsewhere_ns)[str(name)] = cpu_ns
            elif str(name).startswith(OF_ALL):
                shared_ns[str(name)] = cpu_ns
            else:
                key = str(name) if name == "lab" else f"{name} of {trial}"
                lab_ns[key] = cpu_ns
    if len(busy_ns) != len(cores):
        return math.nan
    busy = sum(busy_ns.values())
    # What the lab did not start runs on any core: it is taken to be where the machine is busy.
    placed_share = busy / max(1.0, busy + sum(elsewhere_ns.values()))
    return busy - sum(lab_ns.values()) - placed_share * sum(shared_ns.values())
