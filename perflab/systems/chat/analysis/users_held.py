"""How many trials of each configuration met the study's three targets."""

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

# Levels that name a rung or follow from its users; all other levels make its configuration.
_OF_A_RUNG = ("rung", "users", "join_s", "scenario")
_NUMBERS = ["messages_per_s", "plateau_cpu_share_chat"]


def targets_ms() -> dict[str, float]:
    """Return the chat study's targets by response, in ms: p90, p95 and p99 of deliveries."""
    return {
        f"delivery_{measure.removesuffix('_latency')}_ms": value
        for measure, value in targets("chat").items()
    }


def users_held(run: Run) -> pd.DataFrame:
    """Return one row per rung: how many of its trials meet all targets.

    Columns: configuration (the name of its first rung, without a number of users), users, treatment
    (its label); held, missed, refused (trials); first_missed (the target missed most often, empty
    if none was missed); and the typical value over valid trials of messages_per_s,
    plateau_cpu_share_chat (1.0 = one core) and every response that has a target, each with
    ``_low``, ``_high`` (95%, NaN where n is too small) and ``_n`` (trials that have it).

    A trial that failed or is invalid counts as missed if the service alone is at fault (see
    :func:`perflab.recordings.fault`), else as refused. A trial with too few deliveries for a
    percentile that has a target counts as refused, too. Rows are sorted by configuration, in the
    recorded order, then by users.
    """
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool)]
    configurations: dict[tuple[str, ...], str] = {}
    rows = []
    for treatment in run.record.treatments:
        key = tuple(treatment.levels[name] for name in treatment.levels if name not in _OF_A_RUNG)
        name = configurations.setdefault(key, _without_users(treatment.levels["rung"]))
        rung_trials = trials[trials["treatment"] == treatment.name]
        rows.append(
            {
                "configuration": name,
                "users": int(treatment.levels["users"]),
                "treatment": treatment.label or treatment.name,
                **_counts(rung_trials),
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


def _counts(trials: pd.DataFrame) -> dict[str, object]:
    limits = targets_ms()
    valid = trials[trials["state"] == "valid"]
    misses = pd.DataFrame({name: valid[name] > most for name, most in limits.items()})
    missed = misses.any(axis=1)
    unknown = valid[list(limits)].isna().any(axis=1) & ~missed
    not_valid = trials[trials["state"] != "valid"]
    by_service = sum(fault(reasons) == "server" for reasons in not_valid["reasons"])
    misses_of = misses.sum()
    return {
        "held": int((~missed & ~unknown).sum()),
        "missed": int(missed.sum()) + by_service,
        "refused": int(unknown.sum()) + len(not_valid) - by_service,
        "first_missed": str(misses_of.idxmax()) if misses_of.any() else "",
        **typical_values(valid, [*_NUMBERS, *limits]),
    }


def _without_users(rung: str) -> str:
    stem, _, users = rung.rpartition("_")
    return stem if stem and users.isdigit() else rung


def held_sentences(table: pd.DataFrame) -> list[str]:
    """Say for each configuration of :func:`users_held` how many users it held.

    A number of users is held if all its trials held (a refused trial did not) and no trial with
    fewer users missed a target. The denominator of every share is all trials; its interval is the
    exact 95% one.
    """
    return [
        _held_sentence(str(name), rungs)
        for name, rungs in table.groupby("configuration", sort=False)
    ]


def _held_sentence(name: str, rungs: pd.DataFrame) -> str:
    trials = rungs["held"] + rungs["missed"] + rungs["refused"]
    missing = rungs[rungs["missed"] > 0]
    below = rungs[rungs["users"] < missing["users"].min()] if len(missing) else rungs
    held = below[(below["held"] == trials[below.index]) & (trials[below.index] > 0)]
    parts = []
    if len(held):
        best = held.iloc[-1]
        users = counted(int(best["users"]), "user")
        parts.append(f"{users} and {_volume(best)} held in {_share(best, 'held')}")
    undecided = below[below["refused"] > 0]
    if len(held):
        undecided = undecided[undecided["users"] > held["users"].max()]
    parts += [_undecided_words(row) for row in undecided.to_dict("records")]
    if len(missing):
        worst = missing.iloc[0]
        missed = f"{_share(worst, 'missed')} {_miss_words(str(worst['first_missed']))}"
        refused = f", {int(worst['refused'])} were refused" if worst["refused"] else ""
        parts.append(f"with {counted(int(worst['users']), 'user')}, {missed}{refused}")
    else:
        parts.append("no limit was found" if len(undecided) else "more were not tried")
    return f"{name.replace('_', ' ')}: {'; '.join(parts)}"


def _undecided_words(row: Mapping[Any, Any]) -> str:
    """Say that refused trials leave a number of users undecided."""
    users = counted(int(row["users"]), "user")
    return f"with {users} nothing is shown, {_share(row, 'held')} held, the others were refused"


def _share(row: Mapping[Any, Any] | pd.Series[Any], what: str) -> str:
    """Return ``3 of 4 trials [19%, 99%]``, refused trials included."""
    rate = Rate(int(row[what]), int(row["held"] + row["missed"] + row["refused"]))
    return f"{rate.hits} of {counted(rate.n, 'trial')} {rate.bounds()}"


def _miss_words(first_missed: str) -> str:
    """Say why trials were not held; without a missed target the service failed otherwise."""
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

    Columns: treatment (its name), percentile (``p90``), ``of`` (pings if the treatment has a
    published row's load, because the study judged pings; else deliveries), target_ms;
    met (trials), unknown (valid trials whose sample is too small for the percentile), trials (all
    that are not superseded), low and high (exact 95% interval of met / trials); published_ms (of
    pings, or NaN) and load (``as published``, ``another one``, or empty without published_ms).

    A trial that failed, was refused or is unknown counts as not met, because a number of users is
    held only if all its trials held.
    """
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool)]
    rows = [
        _of_target(treatment, trials[trials["treatment"] == treatment.name], response, limit_ms)
        for treatment in run.record.treatments
        for response, limit_ms in targets_ms().items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_target(
    treatment: TreatmentRecord, trials: pd.DataFrame, response: str, limit_ms: float
) -> dict[str, Any]:
    percentile = response.removeprefix("delivery_").removesuffix("_ms")
    published = published_of(treatment.levels)
    column = f"all_ping_{percentile}_ms" if published.same_load else response
    valid = trials[trials["state"] == "valid"]
    values = valid.reindex(columns=[column]).iloc[:, 0].astype(float)
    rate = Rate(int((values <= limit_ms).sum()), len(trials))
    low, high = rate.interval
    load = (SAME if published.same_load else OTHER) if published.ms else ""
    return {
        "treatment": treatment.name, "percentile": percentile,
        "of": PINGS if published.same_load else DELIVERIES, "target_ms": limit_ms,
        "met": rate.hits, "unknown": int(values.isna().sum()), "trials": rate.n,
        "low": low, "high": high,
        "published_ms": published.ms.get(percentile, math.nan), "load": load,
    }  # fmt: skip
