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

import pandas as pd

from perflab.analysis.accounts.cause_texts import (
    byte_count,
    entry_text,
    instead,
    most_changed,
    replaced,
)
from perflab.analysis.accounts.entries import (
    CORE,
    CPU,
    METRIC,
    RESPONSE,
    REST,
    Entry,
    Key,
    by_block,
    entries_of,
    has_both,
    is_response,
    tested_together,
)
from perflab.analysis.accounts.libraries import library_of
from perflab.analysis.accounts.under_load import only_under_load
from perflab.recordings import Run
from perflab.recordings.causes import ALONE, LOADED, MODULE, PROFILED, part_of

# An entry that never is this share of a response time cannot be a cause, and is not tested.
LEAST_SHARE = 0.02
# What explains less of a difference is not named.
LEAST_EXPLAINED = 0.1
# Counts that change by less, in a request, are none of its own; nor are sizes by a smaller share.
LEAST_COUNT, LEAST_GROWTH = 0.5, 0.1
# Answers so many times as large are told, even if nothing but CPU of many functions comes of it.
TIMES_LARGER = 2.0
MOST_CAUSES = 3
# Remarks on what could not be read.
UNREAD = ("accounts.statements", "accounts.metrics", "functions.unknown")
OPENED = ("count", "connections opened")
STARTED = ("count", "processes and threads started")
DELAYED = ("count", "delayed acknowledgements")


@dataclass(frozen=True)
class Cause:
    """What makes a part of a difference, ``explains_ms`` of a request (NaN: no time is known).

    ``of_package``: it is the CPU of a package, and nobody knows which function calls it.
    """

    text: str
    explains_ms: float
    of_package: bool = False


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
    functions = measured_of(profiled, "functions") if profiled else pd.DataFrame()
    causes = judged(measured_of(alone, "accounts"), functions, new, old)
    if causes is None:
        return None
    unread = [text for part in (alone, profiled) if part for text in _unread(part, new, old)]
    causes = replace(causes, unread=tuple(dict.fromkeys(unread)))
    if loaded is None:
        return causes
    trials = loaded.current_trials()
    means = trials.groupby("treatment")["throughput_rps"].mean()
    throughputs = {str(name): float(mean) for name, mean in means.items()}
    text = only_under_load(
        measured_of(loaded, "accounts"), measured_of(loaded, "times"),
        throughputs, new, old, causes.response,
    )  # fmt: skip
    return replace(causes, only_loaded=text)


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
    if accounts.empty:
        return None
    times, metrics, counts = by_block(accounts, new, old)
    if not has_both(times, new, old):
        return None
    cpu = tested_together(entries_of(times[[CPU]], new, old))[CPU]
    divided = _by_function(times, functions)
    times = divided if has_both(divided, new, old) else times
    of_time, of_metric, of_count = (entries_of(each, new, old) for each in (times, metrics, counts))
    response = tested_together({RESPONSE: of_time.pop(RESPONSE)})[RESPONSE]
    least_ms = LEAST_SHARE * max(response.old, response.new)
    of_metric = {key: one for key, one in of_metric.items() if not is_response(one, response)}
    # A statement has a time and a count: all are in the one family.
    tested = tested_together(
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
    libraries = {
        name: library_of(functions, name, one, new, old)
        for (kind, name), one in of_time.items()
        if kind == "function" and one.differs
    }
    widths = [one.high - one.change for (table, _), one in tested.items() if table == "time"]
    return Causes(
        response,
        cpu,
        of_time,
        of_metric,
        of_count,
        tuple(_causes(response, cpu, of_time, of_metric, of_count, libraries)),
        2 * max(widths, default=math.nan),
    )


def measured_of(part: Run, table: str) -> pd.DataFrame:
    """Return the rows of all trials that did not fail: a late client changes none of them."""
    trials = part.current_trials()
    return part.table(table, [*trials.loc[trials["state"] != "failed", "trial_id"]])


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


def _causes(
    response: Entry,
    cpu: Entry,
    times: Mapping[Key, Entry],
    metrics: Mapping[Key, Entry],
    counts: Mapping[Key, Entry],
    libraries: Mapping[str, str],
) -> list[Cause]:
    """Return what explains a difference, if the sides differ: counts, then times by their size.

    Where only their CPU differs, functions alone explain it. What is done more often costs time in
    many entries, and what is on its way between processes is in none: where more statements are
    sent, or connections opened, these explain that as well, and what a store does beside its
    statements. Waits for a core come late, for what is left: all that works waits longer. What is
    still in no entry may be in a metric of the service's own. ``libraries`` names, by function, the
    one that makes most of its difference.
    """
    if not response.differs and not cpu.differs:
        return []
    whole = response if response.differs else cpu
    up = math.copysign(1.0, whole.change)

    def is_enough(cause: Cause) -> bool:
        return up * cause.explains_ms >= LEAST_EXPLAINED * abs(whole.change)

    of_counts = [
        (keys, cause)
        for keys, cause in (_of_counts(response, times, counts) if response.differs else ())
        if is_enough(cause)
    ]
    # What a count stands for is not said again.
    said = {REST}.union(*(keys for keys, _ in of_counts))
    of_times = [
        (
            key[0] == "wait" and key[1].startswith(CORE),
            Cause(
                entry_text(key, one, libraries.get(key[1], "")),
                one.change,
                of_package=key[0] == "function" and key[1].startswith(MODULE),
            ),
        )
        for key, one in times.items()
        if one.differs and key not in said and (response.differs or key[0] == "function")
    ]
    of_times.sort(key=lambda each: (each[0], -up * each[1].explains_ms))
    found = [cause for _, cause in of_counts]
    for is_core, cause in of_times:
        if is_core:
            left = up * (whole.change - sum(other.explains_ms for other in found))
            cause = replace(cause, explains_ms=up * min(up * cause.explains_ms, max(0.0, left)))
        found.append(cause)
    rest_ms = 0.0 if any(REST in keys for keys, _ in of_counts) else times[REST].change
    for key, one in sorted(metrics.items(), key=lambda each: -up * each[1].change)[:1]:
        if one.differs:
            found.append(Cause(entry_text(key, one), up * min(up * one.change, up * rest_ms)))
    numbers = [key for key, one in counts.items() if key[0] == METRIC and one.differs]
    # The largest in proportion, as their units differ.
    numbers.sort(key=lambda key: -abs(counts[key].change) / max(counts[key].old, counts[key].new))
    of_numbers = [Cause(instead(counts[key], f"{key[1]} a request"), math.nan) for key in numbers]
    told = [*filter(is_enough, found)]
    if (text := _size_text(counts, TIMES_LARGER)) and text not in {cause.text for cause in told}:
        # What it costs is in many functions; it comes second, before what may be a part of it, and
        # first where only a library's work is known.
        place = 0 if told and told[0].of_package else 1
        told.insert(place, Cause(text, math.nan))
    return [*told, *of_numbers[:1]][:MOST_CAUSES]


def _of_counts(
    response: Entry, times: Mapping[Key, Entry], counts: Mapping[Key, Entry]
) -> Iterator[tuple[set[Key], Cause]]:
    """Yield the causes that are counts, each with the entries of time that it stands for.

    What nothing explains goes to the first of them; if connections and statements are both more,
    the stores' other work goes to the connections, and the way to the statements. On a full machine
    times overlap, and what is left may be less than nothing: then it is nobody's. What the kernel
    counts of the whole machine is the request's only where more of it comes than others make in
    the time of a longer request.
    """
    up = math.copysign(1.0, response.change)
    ways = {REST} if up * times[REST].change > 0 else set()
    of_stores = {key for key in times if key[0] == "store" or key[1].startswith(f"{CORE} (")}

    def time_of(keys: set[Key]) -> float:
        return sum(times[key].change for key in keys)

    changed = {key for key, one in counts.items() if key[0] == "statement" and one.differs}
    if (delayed := counts.get(DELAYED)) and _is_of_requests(delayed, response):
        text = "answers wait for a delayed acknowledgement (40 ms), as if sent in two writes: "
        yield ways, Cause(text + instead(delayed, "a request"), time_of(ways))
        ways = set()
    if (started := counts.get(STARTED)) and _is_of_requests(started, response):
        yield ways, Cause(instead(started, "processes or threads started a request"), time_of(ways))
        ways = set()
    if (opened := counts.get(OPENED)) and _is_of_requests(opened, response):
        keys = of_stores if changed else of_stores | ways
        yield keys, Cause(instead(opened, "connections opened a request"), time_of(keys))
        of_stores, ways = set(), ways - keys
    if changed and (found := _of_statements(times, counts, changed, of_stores | ways, up)):
        yield found
        ways = ways - found[0]
    if text := _size_text(counts, 1 + LEAST_GROWTH):
        yield ways, Cause(text, time_of(ways))


def _is_of_requests(count: Entry, response: Entry) -> bool:
    """Tell whether a count differs by more than if others made all of the smaller one."""
    sides = (count.old, response.old), (count.new, response.new)
    (few, shorter_ms), (many, longer_ms) = sorted(sides)
    of_others = few * max(1.0, longer_ms / shorter_ms)
    return count.differs and many - of_others >= LEAST_COUNT


def _size_text(counts: Mapping[Key, Entry], times: float) -> str:
    """Return that answers are so many times larger or smaller, if they are."""
    size = counts.get(RESPONSE)
    if size is None or not size.differs:
        return ""
    least, most = sorted((size.old, size.new))
    is_other = most > times * least
    return f"answers of {byte_count(size.new)} instead of {byte_count(size.old)}" * is_other


def _of_statements(
    times: Mapping[Key, Entry],
    counts: Mapping[Key, Entry],
    changed: set[Key],
    beside: set[Key],
    up: float,
) -> tuple[set[Key], Cause] | None:
    """Return what other statements explain: their own time, and a part of what is beside them.

    Of that, more statements make in proportion to their number what there was before. One statement
    instead of another makes none of it, nor do fewer that take longer: those are told by the
    dearest of both sides. None where statements were only added, or left out, against the
    difference.
    """
    every = [one for (kind, _), one in counts.items() if kind == "statement"]
    new, old = sum(one.new for one in every), sum(one.old for one in every)
    own_ms = sum(times[key].change for key in changed)
    if abs(new - old) < LEAST_COUNT or up * (new - old) < 0:
        text = replaced(times, {key: counts[key] for key in changed})
        return (changed, Cause(text, own_ms)) if text else None
    more = up * (new / old - 1) if old else math.inf
    theirs_ms = sum(one.old for key, one in times.items() if key[0] == "statement")
    beside_ms = sum(
        up * min(up * times[key].change, max(0.0, more * max(times[key].old, theirs_ms)))
        for key in beside
    )
    most = most_changed(counts, new - old)
    text = f"{new:.3g} statements a request instead of {old:.3g}: {most}"
    return changed | beside, Cause(text, own_ms + beside_ms)
