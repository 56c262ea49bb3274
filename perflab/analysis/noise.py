"""How noisy the machine was during a run: facts, each with a flag where it may have mattered.

Nothing is dropped for being noisy: blocks, intervals and the generator's self-check deal with
noise. The report tells a reader where to look when intervals are wide.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from perflab.recordings import Run
from perflab.statistics.in_words import counted, number

COLUMNS = ["what", "value", "flag"]
# What nobody knows is not held against a machine.
FAST = ("performance", "unknown")
STEADY_CLOCKS = (
    "tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "unknown",
)  # fmt: skip
MAX_STEAL_SHARE = 0.01
MAX_FOREIGN_SHARE = 0.05
MAX_FLUSH_DRIFT = 1.5
MAX_SPEED_DRIFT = 1.1
MAX_INVALID_SHARE = 0.1
SPEED = "cpu_probe_before_ms"
# 100 ticks of 10 ms: a share of some percent can be told.
SMALLEST_MEASURED_NS = 1e9
UNKNOWN = "not told by this machine"


class Fact(NamedTuple):
    """What is known of one kind of noise.

    ``flag`` says what it may have done, and ``brief`` the same in a few words that stand beside
    verdicts; both are empty where there is nothing to say.
    """

    what: str
    value: str
    flag: str = ""
    brief: str = ""


def _flagged(what: str, value: str, wrong: bool, flag: str, brief: str) -> Fact:
    """Return a fact that has its flag where something is wrong."""
    return Fact(what, value, flag, brief) if wrong else Fact(what, value)


def noise_report(run: Run) -> pd.DataFrame:
    """Return what is known of the machine's noise during a run.

    Columns: what, value (text with its unit), flag (empty where there is nothing to say).
    """
    return pd.DataFrame([fact[: len(COLUMNS)] for fact in _facts(run)], columns=COLUMNS)


def noise_flags(run: Run) -> tuple[str, ...]:
    """Return the flags of :func:`noise_report` in a few words each: ``speed changed 1.5x``.

    Trials that do not count are not among them: how many are valid is told beside every verdict.
    """
    return tuple(fact.brief for fact in _facts(run) if fact.brief)


def _facts(run: Run) -> Iterator[Fact]:
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool)]
    yield from _machine(run.record.environment)
    yield from _cores(run.record.placement)
    yield from _load(run.record.environment, dict(run.record.notes))
    yield from _of_trials(trials)
    yield from _foreign(run, trials)


def _machine(environment: dict[str, Any]) -> Iterator[Fact]:
    governor, turbo, clock = (
        str(environment.get(name, "unknown")) for name in ("governor", "turbo", "clock_source")
    )
    follows = "the clock rate may follow the load; set it to 'performance'"
    slows = "speed depends on temperature and on other cores"
    coarse = "reading the clock is slow or coarse"
    brief = f"CPU governor {governor}"
    yield _flagged("CPU governor", _told(governor), governor not in FAST, follows, brief)
    yield _flagged("turbo", _told(turbo), turbo == "on", slows, "turbo on")
    brief = f"clock source {clock}"
    yield _flagged("clock source", _told(clock), clock not in STEADY_CLOCKS, coarse, brief)


def _told(value: str) -> str:
    return value if value != "unknown" else UNKNOWN


def _cores(placement: dict[str, Any]) -> Iterator[Fact]:
    """Tell what shares cores; a client on a core of what it measures slows it down."""
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


def _load(environment: dict[str, Any], notes: dict[str, Any]) -> Iterator[Fact]:
    before = environment.get("load_average") or []
    cores = int((environment.get("machine") or {}).get("cores", 0) or 0)
    if before:
        yield _flagged(
            "load average before",
            f"{float(before[0]):.2f} on {counted(cores, 'core')}",
            0 < 0.5 * cores < float(before[0]),
            "something else was running when the run began",
            f"something else ran at the start (load {float(before[0]):.1f})",
        )
    after = notes.get("load_average_after") or []
    if after:
        yield Fact("load average after", f"{float(after[0]):.2f} (the run's own included)")


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
    if "client_real_time" in trials:
        yield from _priority(_finite(trials["client_real_time"]))


def _priority(told: pd.Series[Any]) -> Iterator[Fact]:
    told = told[told >= 0]
    if len(told):
        ordinary = int(np.count_nonzero(told.to_numpy() == 0))
        some = f"ordinary in {ordinary} of {counted(len(told), 'trial')}"
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
    """Tell how far the medians of the blocks lie apart; ``names``: what, its unit, in brief."""
    if column not in trials:
        return
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
    """Tell the stolen share of all measured time: the kernel counts it in ticks of 10 ms."""
    spans = (trials["end_ns"] - trials["begin_ns"]).to_numpy(float)
    shares = pd.to_numeric(trials["steal_share"], errors="coerce").to_numpy(float)
    known = np.isfinite(shares) & (spans > 0)
    if known.any():
        share = float(np.average(shares[known], weights=spans[known]))
        yield _flagged(
            "CPU stolen by the host",
            f"{share:.1%} of the measured time",
            share > MAX_STEAL_SHARE,
            "other guests took CPU time",
            f"other guests took {share:.0%} of the CPU (steal)",
        )


def _foreign(run: Run, trials: pd.DataFrame) -> Iterator[Fact]:
    """Tell how much of the lab's cores went to processes that are not the lab's.

    Over all trials together: a core's busy time is counted in ticks of 10 ms, so that a short
    trial alone can tell nothing.
    """
    cores = {
        core
        for role, own in run.record.placement.items()
        if role != "shared" and isinstance(own, list | tuple)
        for core in own
    }
    foreign_ns = measured_ns = 0.0
    for together in _at_once(run, trials):
        begin_ns = min(trial["begin_ns"] for trial in together)
        end_ns = max(trial["end_ns"] for trial in together)
        found = _foreign_ns(run, together, begin_ns, end_ns, len(cores))
        if math.isfinite(found):
            foreign_ns += found
            measured_ns += (end_ns - begin_ns) * len(cores)
    if measured_ns < SMALLEST_MEASURED_NS:
        return
    share = max(0.0, foreign_ns / measured_ns)
    yield _flagged(
        "others on the lab's cores",
        f"{share:.1%} of their measured time",
        share > MAX_FOREIGN_SHARE,
        "other processes ran there (interrupts count too)",
        f"others used {share:.0%} of the cores",
    )


def _at_once(run: Run, trials: pd.DataFrame) -> list[list[dict[Any, Any]]]:
    """Return the trials that ran in the same stretch of time: each alone, or those of a block."""
    rows = [row for row in trials.to_dict("records") if row["state"] != "failed"]
    if not run.record.shares_time:
        return [[row] for row in rows]
    blocks = dict.fromkeys(row["block"] for row in rows)
    return [[row for row in rows if row["block"] == block] for block in blocks]


def _foreign_ns(
    run: Run, trials: Sequence[dict[Any, Any]], begin_ns: int, end_ns: int, cores: int
) -> float:
    """Return the cores' busy time less the lab's own in the measured stage; NaN if unknown.

    Each of the trials at once has samples of its own services and client; cores and the lab are in
    the samples of all.
    """
    if not cores or not end_ns > begin_ns:
        return math.nan
    busy: dict[str, float] = {}
    ours: dict[str, float] = {}
    for trial in trials:
        samples = run.samples([trial["trial_id"]])
        for name, own in samples.groupby("service"):
            used_ns = _used_ns(own, begin_ns, end_ns)
            if str(name).startswith("core "):
                busy[str(name)] = used_ns
            else:
                key = str(name) if name == "lab" else f"{name} of {trial['trial_id']}"
                ours[key] = used_ns
    return sum(busy.values()) - sum(ours.values()) if len(busy) == cores else math.nan


def _used_ns(own: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    if len(own) < 2:
        return math.nan
    edges = np.interp([begin_ns, end_ns], own["t_ns"].to_numpy(), own["cpu_ns"].to_numpy())
    return float(edges[1] - edges[0])


def _finite(values: pd.Series[Any]) -> pd.Series[Any]:
    numbers = pd.to_numeric(values, errors="coerce").astype(float)
    return numbers[np.isfinite(numbers)]
