"""In how many trials of each configuration the study's three targets were met, each by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from perflab.analysis.validity import typical_values
from perflab.recordings import Run, TreatmentRecord, fault, targets
from perflab.statistics.in_words import counted
from perflab.statistics.two_samples import Rate
from perflab.systems.chat.rungs import published_of

# What names a rung or follows from its users; all other levels make its configuration.
_OF_A_RUNG = ("rung", "users", "join_s", "scenario")
_NUMBERS = ["messages_per_s", "plateau_cpu_share_chat"]


def targets_ms() -> dict[str, float]:
    """Return the chat study's targets by response, in ms: p90, p95 and p99 of deliveries."""
    return {
        f"delivery_{measure.removesuffix('_latency')}_ms": value
        for measure, value in targets("chat").items()
    }


def users_held(run: Run) -> pd.DataFrame:
    """Return one row per rung: do its trials meet all targets?

    Columns: configuration (the name of its first rung, without a number of users), users, treatment
    (its label); held, missed, refused (trials); first_missed (the target missed most often, empty
    where none was); and the typical value over valid trials of messages_per_s,
    plateau_cpu_share_chat (1.0 = one core) and every response that has a target, each with
    ``_low``, ``_high`` (95%, NaN where n is too small) and ``_n`` (trials that have it).

    A trial that failed or is invalid counts as missed where the service alone is at fault (see
    :func:`perflab.recordings.fault`), else as refused; so does one with too few deliveries for a
    percentile that has a target. Rows go by configuration as recorded, then by users.
    """
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool)]
    configurations: dict[tuple[str, ...], str] = {}
    rows = []
    for item in run.record.treatments:
        key = tuple(item.levels[name] for name in item.levels if name not in _OF_A_RUNG)
        name = configurations.setdefault(key, _without_users(item.levels["rung"]))
        own = trials[trials["treatment"] == item.name]
        rows.append(
            {
                "configuration": name,
                "users": int(item.levels["users"]),
                "treatment": item.label or item.name,
                **_judged(own),
            }
        )
    order = {name: place for place, name in enumerate(configurations.values())}
    table = pd.DataFrame(rows)
    places = table["configuration"].map(order)
    return (
        table.assign(place=places)
        .sort_values(["place", "users"], ignore_index=True)
        .drop(columns="place")
    )


def _judged(trials: pd.DataFrame) -> dict[str, object]:
    limits = targets_ms()
    valid = trials[trials["state"] == "valid"]
    misses = pd.DataFrame({name: valid[name] > most for name, most in limits.items()})
    missed = misses.any(axis=1)
    unknown = valid[list(limits)].isna().any(axis=1) & ~missed
    other = trials[trials["state"] != "valid"]
    by_service = sum(fault(reasons) == "server" for reasons in other["reasons"])
    often = misses.sum()
    return {
        "held": int((~missed & ~unknown).sum()),
        "missed": int(missed.sum()) + by_service,
        "refused": int(unknown.sum()) + len(other) - by_service,
        "first_missed": str(often.idxmax()) if often.any() else "",
        **typical_values(valid, [*_NUMBERS, *limits]),
    }


def _without_users(rung: str) -> str:
    stem, _, users = rung.rpartition("_")
    return stem if stem and users.isdigit() else rung


def held_sentences(table: pd.DataFrame) -> list[str]:
    """Say for each configuration of :func:`users_held` what it held, and what it did not.

    A number of users is held when every trial of it held, those that were refused counting as not
    held, and no trial of any smaller number missed a target. Every share has all trials below the
    line, and its exact 95% interval.
    """
    return [_said(str(name), group) for name, group in table.groupby("configuration", sort=False)]


def _said(name: str, group: pd.DataFrame) -> str:
    trials = group["held"] + group["missed"] + group["refused"]
    broken = group[group["missed"] > 0]
    below = group[group["users"] < broken["users"].min()] if len(broken) else group
    good = below[(below["held"] == trials[below.index]) & (trials[below.index] > 0)]
    parts = []
    if len(good):
        best = good.iloc[-1]
        users = counted(int(best["users"]), "user")
        parts.append(f"{users} and {_volume(best)} held in {_share(best, 'held')}")
    unclear = below[below["refused"] > 0]
    if len(good):
        unclear = unclear[unclear["users"] > good["users"].max()]
    parts += [_unclear(row) for row in unclear.to_dict("records")]
    if len(broken):
        worst = broken.iloc[0]
        missed = f"{_share(worst, 'missed')} {_why(str(worst['first_missed']))}"
        refused = f", {int(worst['refused'])} were refused" if worst["refused"] else ""
        parts.append(f"with {counted(int(worst['users']), 'user')}, {missed}{refused}")
    else:
        parts.append("no limit was found" if len(unclear) else "more were not tried")
    return f"{name.replace('_', ' ')}: {'; '.join(parts)}"


def _unclear(row: Mapping[Any, Any]) -> str:
    """Say of a number of users that refused trials keep from being held."""
    users = counted(int(row["users"]), "user")
    return f"with {users} nothing is shown, {_share(row, 'held')} held, the others were refused"


def _share(row: Mapping[Any, Any] | pd.Series[Any], what: str) -> str:
    """Return ``3 of 4 trials [19%, 99%]``: the refused ones are among them."""
    rate = Rate(int(row[what]), int(row["held"] + row["missed"] + row["refused"]))
    return f"{rate.hits} of {counted(rate.n, 'trial')} {rate.bounds()}"


def _why(first_missed: str) -> str:
    """Say what a trial did that was not held; nothing missed: the service failed it otherwise."""
    if not first_missed:
        return "failed through the service's own fault"
    return f"missed a target ({first_missed.removeprefix('delivery_').removesuffix('_ms')})"


def _volume(best: pd.Series[Any]) -> str:
    value, low, high = (best[f"messages_per_s{end}"] for end in ("", "_low", "_high"))
    if math.isnan(low):
        return f"{value:,.0f} messages/s (no interval)"
    return f"{value:,.0f} [{low:,.0f}, {high:,.0f}] messages/s"


COLUMNS = [
    "treatment", "percentile", "of", "target_ms", "met", "unknown", "trials", "low", "high",
    "published_ms", "load",
]  # fmt: skip
DELIVERIES, PINGS = "deliveries", "pings"
SAME, OTHER = "as published", "another one"


def targets_met(run: Run) -> pd.DataFrame:
    """Return one row per treatment and target.

    Columns: treatment (its name), percentile (``p90``), ``of`` (what it is of: pings where the
    treatment has a published row's load, for the study judged pings; else deliveries), target_ms;
    met (trials), unknown (valid trials whose sample is too small for the percentile), trials (all
    that are not superseded), low and high (exact 95% interval of met / trials); published_ms (of
    pings, NaN without) and load (``as published`` or ``another one``; empty without).

    A trial that failed, was refused or cannot tell is among the trials and not met, as a number of
    users is held only where every trial of it held.
    """
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool)]
    rows = [
        _of_target(item, trials[trials["treatment"] == item.name], response, limit_ms)
        for item in run.record.treatments
        for response, limit_ms in targets_ms().items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_target(
    item: TreatmentRecord, own: pd.DataFrame, response: str, limit_ms: float
) -> dict[str, Any]:
    percentile = response.removeprefix("delivery_").removesuffix("_ms")
    known = published_of(item.levels)
    column = f"all_ping_{percentile}_ms" if known.same_load else response
    valid = own[own["state"] == "valid"]
    values = valid.reindex(columns=[column]).iloc[:, 0].astype(float)
    rate = Rate(int((values <= limit_ms).sum()), len(own))
    low, high = rate.interval
    load = (SAME if known.same_load else OTHER) if known.ms else ""
    return {
        "treatment": item.name, "percentile": percentile,
        "of": PINGS if known.same_load else DELIVERIES, "target_ms": limit_ms,
        "met": rate.hits, "unknown": int(values.isna().sum()), "trials": rate.n,
        "low": low, "high": high,
        "published_ms": known.ms.get(percentile, math.nan), "load": load,
    }  # fmt: skip
