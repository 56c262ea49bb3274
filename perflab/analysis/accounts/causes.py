"""Why one side of a comparison is slower: what of a request's account makes the difference.

A response time, of requests that come one at a time, is a sum: CPU of the service by function,
statements of its stores and their other work, waits, and what none of these explains. The sides'
difference is the sum of the differences of the entries, each with its interval over blocks
(Student's t, which takes noise to be normal). Where the sides differ at all, the p-values of their
entries are one family (Holm). Cost is attributed to what it was spent for, over many samples, as
FBDetect does (B. Dong and others, SOSP 2024).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd

from perflab.recordings import Run
from perflab.recordings.causes import ALONE, LOADED, PROFILED, part_of
from perflab.statistics.families import holm
from perflab.statistics.in_words import number
from perflab.statistics.quantiles import t_interval

LEVEL = 0.05
# An entry that never is this share of a response time cannot be a cause, and is not tested.
LEAST_SHARE = 0.02
# What explains less of a difference is not named.
LEAST_EXPLAINED = 0.1
# Counts that change by less, in a request, are none of its own; nor are sizes by a smaller share.
LEAST_COUNT, LEAST_GROWTH = 0.5, 0.1
# From this share on a difference comes only under load; a core that is busier is full.
ONLY_LOADED, FULL = 0.5, 0.85
MOST_CAUSES = 3
NO_SPREAD = 1e-12
# A metric of at least this share of the response time, on both sides, is the response time.
THE_REQUEST = 0.8
METRIC = "metric"
# Remarks on what could not be read.
UNREAD = ("accounts.statements", "accounts.metrics", "functions.unknown")
OPENED = ("count", "connections opened")
DELAYED = ("count", "delayed acknowledgements")
RESPONSE, REST, CPU = ("response", ""), ("not explained", ""), ("cpu", "")
CORE = "a core"
Key = tuple[str, str]
Name = TypeVar("Name")


@dataclass(frozen=True)
class Entry:
    """An entry of an account, per request: both sides, the difference and its 95% interval.

    Times are in ms. ``adjusted`` is the p-value, adjusted over all entries of the pair (NaN: not
    tested).
    """

    old: float
    new: float
    change: float
    low: float
    high: float
    p_value: float
    adjusted: float = math.nan

    @property
    def differs(self) -> bool:
        """Whether the sides differ for certain."""
        return self.adjusted <= LEVEL


@dataclass(frozen=True)
class Cause:
    """What makes a part of a difference, ``explains_ms`` of a request (NaN: no time is known)."""

    text: str
    explains_ms: float


@dataclass(frozen=True)
class Causes:
    """The accounts of a pair, by kind and name, and what they say.

    ``times`` add up to the ``response`` time, with an entry of what none of them explains; ``cpu``
    is the service's, in all functions. ``metrics`` are times that the service counts itself, which
    overlap. ``counts`` are per request. A change of any time above ``visible_ms`` would have been
    seen. ``only_loaded`` says what comes only under the load, and ``unread`` what is not known.
    """

    response: Entry
    cpu: Entry
    times: Mapping[Key, Entry]
    metrics: Mapping[Key, Entry]
    counts: Mapping[Key, Entry]
    causes: tuple[Cause, ...]
    visible_ms: float
    only_loaded: str = ""
    unread: tuple[str, ...] = ()


def causes_of(run: Run, new: str, old: str) -> Causes | None:
    """Return why the treatment ``new`` differs from ``old``; None where that was not measured."""
    if (alone := part_of(run, ALONE)) is None:
        return None
    profiled, loaded = part_of(run, PROFILED), part_of(run, LOADED)
    functions = _measured(profiled, "functions") if profiled else pd.DataFrame()
    causes = judged(_measured(alone, "accounts"), functions, new, old)
    if causes is None:
        return None
    unread = [text for part in (alone, profiled) if part for text in _unread(part, new, old)]
    causes = replace(causes, unread=tuple(dict.fromkeys(unread)))
    if loaded is None:
        return causes
    return replace(causes, only_loaded=_only_loaded(loaded, new, old, causes.response))


def _unread(part: Run, new: str, old: str) -> Iterator[str]:
    """Yield what an instrument of a part could not read of either side."""
    trials = part.current_trials()
    for remarks in trials.loc[trials["treatment"].isin([new, old]), "warnings"]:
        for remark in remarks:
            if remark.code in UNREAD:
                yield remark.text


def judged(accounts: pd.DataFrame, functions: pd.DataFrame, new: str, old: str) -> Causes | None:
    """Return why ``new`` differs from ``old``, by rows of both tables with treatment and block.

    None where a side has no accounts.
    """
    times, metrics, counts = _by_block(accounts)
    if not _has(times, new, old):
        return None
    cpu = _tested(_entries(times[[CPU]], new, old))[CPU]
    times = _by_function(times, functions)
    if not _has(times, new, old):
        return None
    of_time, of_metric, of_count = (_entries(each, new, old) for each in (times, metrics, counts))
    response = _tested({RESPONSE: of_time.pop(RESPONSE)})[RESPONSE]
    least_ms = LEAST_SHARE * max(response.old, response.new)
    of_metric = {key: one for key, one in of_metric.items() if not _is_response(one, response)}
    # A statement has a time and a count: all are in the one family.
    tested = _tested(
        {
            (table, key): one
            for table, entries in (("time", of_time), (METRIC, of_metric))
            for key, one in entries.items()
            if max(one.old, one.new) >= least_ms
        }
        | {("count", key): one for key, one in of_count.items() if abs(one.change) >= LEAST_COUNT}
    )
    of_time, of_metric, of_count = (
        {key: tested.get((table, key), one) for key, one in entries.items()}
        for table, entries in (("time", of_time), (METRIC, of_metric), ("count", of_count))
    )
    widths = [one.high - one.change for (table, _), one in tested.items() if table == "time"]
    return Causes(
        response,
        cpu,
        of_time,
        of_metric,
        of_count,
        tuple(_causes(response, cpu, of_time, of_metric, of_count)),
        2 * max(widths, default=math.nan),
    )


def _is_response(metric: Entry, response: Entry) -> bool:
    sides = (metric.old, response.old), (metric.new, response.new)
    return all(of_metric >= THE_REQUEST * whole for of_metric, whole in sides)


def _tested(family: Mapping[Name, Entry]) -> dict[Name, Entry]:
    """Return the entries with their p-values adjusted over all of them."""
    adjusted = holm([one.p_value for one in family.values()])
    return {
        key: replace(one, adjusted=p)
        for (key, one), p in zip(family.items(), adjusted, strict=True)
    }


def _has(table: pd.DataFrame, new: str, old: str) -> bool:
    return len(table) > 0 and {new, old} <= {*table.index.get_level_values("treatment")}


def _measured(part: Run, table: str) -> pd.DataFrame:
    """Return the rows of all trials that did not fail: a late client changes none of them."""
    trials = part.current_trials()
    return part.table(table, [*trials.loc[trials["state"] != "failed", "trial_id"]])


def _by_block(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return times, those of metrics, and counts by treatment and block.

    There is a column for each kind and entry.
    """
    is_metric = table["kind"] == METRIC
    times, metrics, counts = (
        rows.dropna(subset=[values]).pivot_table(
            index=["treatment", "block"], columns=["kind", "entry"], values=values,
            aggfunc="sum", fill_value=0.0,
        )
        for rows, values in (
            (table[~is_metric], "time_ms"), (table[is_metric], "time_ms"), (table, "count"),
        )
    )  # fmt: skip
    if len(times):
        parts = times.drop(columns=[RESPONSE]).sum(axis=1)
        times[REST] = times[RESPONSE] - parts
    return times, metrics, counts


def _by_function(times: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Return the times with the service's CPU divided by function, as its profile divides it.

    The profile of a block divides the CPU of the block with its number.
    """
    if table.empty:
        return times
    samples = table.pivot_table(
        index=["treatment", "block"], columns="function", values="samples", aggfunc="sum",
        fill_value=0,
    )  # fmt: skip
    shares = samples.div(samples.sum(axis=1), axis=0)
    shares.columns = pd.MultiIndex.from_tuples([("function", name) for name in shares.columns])
    both = times.index.intersection(shares.index)
    divided = shares.loc[both].mul(times.loc[both, CPU], axis=0)
    return pd.concat([times.loc[both].drop(columns=[CPU]), divided], axis=1)


def _entries(table: pd.DataFrame, new: str, old: str) -> dict[Key, Entry]:
    return {(str(key[0]), str(key[1])): _entry(table[key], new, old) for key in table.columns}


def _entry(values: pd.Series[float], new: str, old: str) -> Entry:
    """Return the difference of an entry, paired within blocks."""
    sides = values.unstack("treatment")[[new, old]].dropna()
    changes = (sides[new] - sides[old]).to_numpy(dtype=float)
    low, high = t_interval(changes)
    return Entry(
        float(sides[old].mean()), float(sides[new].mean()), float(changes.mean()), low, high,
        _p_value(changes),
    )  # fmt: skip


def _p_value(changes: np.ndarray) -> float:
    """Return the p-value of Student's test that the mean change is 0."""
    from scipy import special

    mean, n = float(changes.mean()), len(changes)
    if n < 2:
        return math.nan
    error = float(changes.std(ddof=1)) / math.sqrt(n)
    if error <= NO_SPREAD * abs(mean):  # counts are often the same in all blocks
        return 0.0 if mean else 1.0
    return float(2 * special.stdtr(n - 1, -abs(mean) / error))


def _causes(
    response: Entry,
    cpu: Entry,
    times: Mapping[Key, Entry],
    metrics: Mapping[Key, Entry],
    counts: Mapping[Key, Entry],
) -> list[Cause]:
    """Return what explains a difference, if the sides differ: counts, then times by their size.

    Where only their CPU differs, functions alone explain it. What is done more often costs time in
    many entries, and what is on its way between processes is in none: where more statements are
    sent, or connections opened, these explain that as well, and what a store does beside its
    statements. Waits for a core come late: on a busy machine all that works waits longer. What is
    still in no entry may be in a metric of the service's own.
    """
    if not response.differs and not cpu.differs:
        return []
    whole = response if response.differs else cpu
    up = math.copysign(1.0, whole.change)

    def is_enough(cause: Cause) -> bool:
        return up * cause.explains_ms >= LEAST_EXPLAINED * abs(whole.change)

    of_counts = [
        (keys, cause)
        for keys, cause in (_of_counts(times, counts, up) if response.differs else ())
        if is_enough(cause)
    ]
    # What a count stands for is not said again.
    said = {REST}.union(*(keys for keys, _ in of_counts))
    of_times = [
        (key[0] == "wait" and key[1].startswith(CORE), Cause(_in_words(key, one), one.change))
        for key, one in times.items()
        if one.differs and key not in said and (response.differs or key[0] == "function")
    ]
    of_times.sort(key=lambda each: (each[0], -up * each[1].explains_ms))
    found = [*(cause for _, cause in of_counts), *(cause for _, cause in of_times)]
    rest_ms = 0.0 if any(REST in keys for keys, _ in of_counts) else times[REST].change
    for key, one in sorted(metrics.items(), key=lambda each: -up * each[1].change)[:1]:
        if one.differs:
            found.append(Cause(_in_words(key, one), up * min(up * one.change, up * rest_ms)))
    numbers = [key for key, one in counts.items() if key[0] == METRIC and one.differs]
    # The largest in proportion, as their units differ.
    numbers.sort(key=lambda key: -abs(counts[key].change) / max(counts[key].old, counts[key].new))
    of_numbers = [Cause(_instead(counts[key], f"{key[1]} a request"), math.nan) for key in numbers]
    return [*filter(is_enough, found), *of_numbers[:1]][:MOST_CAUSES]


def _of_counts(
    times: Mapping[Key, Entry], counts: Mapping[Key, Entry], up: float
) -> Iterator[tuple[set[Key], Cause]]:
    """Yield the causes that are counts, each with the entries of time that it stands for.

    What nothing explains goes to the first of them; if connections and statements are both more,
    the stores' other work goes to the connections, and the way to the statements. On a full machine
    times overlap, and what is left may be less than nothing: then it is nobody's. ``up`` is the
    sign of the whole difference.
    """
    ways = {REST} if up * times[REST].change > 0 else set()
    of_stores = {key for key in times if key[0] == "store" or key[1].startswith(f"{CORE} (")}

    def time_of(keys: set[Key]) -> float:
        return sum(times[key].change for key in keys)

    size = counts.get(RESPONSE)
    changed = {key for key, one in counts.items() if key[0] == "statement" and one.differs}
    if (delayed := counts.get(DELAYED)) and delayed.differs:
        text = "answers wait for a delayed acknowledgement (40 ms), as if sent in two writes: "
        yield ways, Cause(text + _instead(delayed, "a request"), time_of(ways))
        ways = set()
    if (opened := counts.get(OPENED)) and opened.differs:
        keys = of_stores if changed else of_stores | ways
        yield keys, Cause(_instead(opened, "connections opened a request"), time_of(keys))
        of_stores, ways = set(), ways - keys
    if changed:
        new, old = _statements(counts)
        # Beside themselves they make in proportion to their number what there was before.
        more = up * (new / old - 1) if old else math.inf
        theirs_ms = sum(one.old for key, one in times.items() if key[0] == "statement")
        beside_ms = sum(
            up * min(up * times[key].change, max(0.0, more * max(times[key].old, theirs_ms)))
            for key in of_stores | ways
        )
        text = f"{new:.3g} statements a request instead of {old:.3g}: {_most_changed(counts)}"
        yield changed | of_stores | ways, Cause(text, time_of(changed) + beside_ms)
        ways = set()
    if size and size.differs and abs(size.change) > LEAST_GROWTH * size.old:
        text = f"answers of {_bytes(size.new)} instead of {_bytes(size.old)}"
        yield ways, Cause(text, time_of(ways))


def _statements(counts: Mapping[Key, Entry]) -> tuple[float, float]:
    """Return how many statements a request of each side has."""
    every = [one for (kind, _), one in counts.items() if kind == "statement"]
    return sum(one.new for one in every), sum(one.old for one in every)


def _most_changed(counts: Mapping[Key, Entry]) -> str:
    """Return the statement whose number changes most, with the change: ``SELECT ... (+20)``."""
    every = {key[1]: one.change for key, one in counts.items() if key[0] == "statement"}
    text = max(every, key=lambda name: abs(every[name]))
    return f"{text} ({every[text]:+.3g})"


def _instead(entry: Entry, what: str) -> str:
    return f"{entry.new:.2g} {what} instead of {entry.old:.2g}"


def _bytes(count: float) -> str:
    return f"{number(count / 1e3)} kB" if count >= 1e3 else f"{count:.0f} bytes"


def entry_name(key: Key) -> str:
    """Return what an entry of an account is, in words."""
    kind, name = key
    return {
        "function": f"{name}, CPU",
        "cpu": "the service's CPU",
        "store": f"{name}, CPU beside its statements",
        "wait": f"waits for {name}",
        "response": "the response time",
        "not explained": "in none of these",
    }.get(kind, name)


def _in_words(key: Key, entry: Entry) -> str:
    """Return ``serialize (views.py) takes 0.21 ms of CPU instead of 0.05``."""
    kind, name = key
    sizes = f"{number(entry.new)} ms{{}} instead of {number(entry.old)}"
    function = f"{name} takes {sizes.format(' of CPU')}"
    if not entry.old:
        function = f"{name}, which the other side never calls, takes {number(entry.new)} ms of CPU"
    elif not entry.new:
        function = f"{name} is never called; it took {number(entry.old)} ms of CPU"
    forms = {
        "function": function,
        "cpu": f"the service takes {sizes.format(' of CPU')}",
        "statement": f"{name} takes {sizes.format('')}",
        "store": f"{name}, beside its statements, takes {sizes.format(' of CPU')}",
        "wait": f"waits for {name}: {sizes.format('')}",
        METRIC: f"{name}, as the service counts it: {sizes.format('')}",
    }
    return forms[kind]


def _only_loaded(loaded: Run, new: str, old: str, alone: Entry) -> str:
    """Return a sentence where most of a difference comes only under the load of the run."""
    times, metrics, _ = _by_block(_measured(loaded, "accounts"))
    if not _has(times, new, old):
        return ""
    response = _entry(times[RESPONSE], new, old)
    only_ms = response.change - alone.change
    if not response.p_value <= LEVEL or only_ms / response.change < ONLY_LOADED:
        return ""
    up = math.copysign(1.0, only_ms)
    waits = {key: one for key, one in _entries(times, new, old).items() if key[0] == "wait"}
    counted = _entries(metrics, new, old)
    enough = [
        (key[1] + told, one)
        for entries, told in ((waits, ""), (counted, ", as the service counts it"))
        for key, one in sorted(entries.items(), key=lambda each: -up * each[1].change)
        if up * one.change >= ONLY_LOADED * abs(only_ms) and not _is_response(one, response)
    ]
    share = _core_share(loaded, new, _entry(times[CPU], new, old).new)
    if enough:
        what = enough[0][0]
    elif share >= FULL:
        what = f"the service itself, which uses {share:.0%} of a core"
    else:
        what = "something in the service that one request uses at a time: a lock, a pool, a thread"
    return (
        f"{number(abs(only_ms))} of {number(abs(response.change))} ms come only under the load: "
        f"requests wait for {what}"
    )


def _core_share(loaded: Run, treatment: str, cpu_ms: float) -> float:
    """Return how much of a core a service used under the load, by its CPU of a request."""
    trials = loaded.current_trials()
    rates = trials.loc[trials["treatment"] == treatment, "throughput_rps"]
    return float(rates.mean()) * cpu_ms / 1e3
