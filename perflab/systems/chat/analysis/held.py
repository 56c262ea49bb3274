"""How many users each configuration of a chat service holds within the study's targets."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from perflab.analysis.trials.summary import typical_values
from perflab.numerals import counted
from perflab.recordings import Run, fault, targets

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

    A number of users is held when no trial of it, nor of any smaller number, missed a target.
    """
    return [_said(str(name), group) for name, group in table.groupby("configuration", sort=False)]


def _said(name: str, group: pd.DataFrame) -> str:
    judged = group[group["held"] + group["missed"] > 0]
    broken = judged[judged["missed"] > 0]
    good = judged[judged["users"] < broken["users"].min()] if len(broken) else judged
    parts = []
    if len(good):
        best = good.iloc[-1]
        parts.append(
            f"{counted(int(best['users']), 'user')} and {_volume(best)} held in {best['held']} of "
            f"{counted(int(best['held']), 'trial')}"
        )
    if len(broken):
        worst = broken.iloc[0]
        missed, of = int(worst["missed"]), int(worst["held"] + worst["missed"])
        parts.append(
            f"with {counted(int(worst['users']), 'user')}, {missed} of {counted(of, 'trial')} "
            f"{_why(str(worst['first_missed']))}"
        )
    else:
        parts.append("more were not tried" if len(good) == len(group) else "no limit was found")
    if len(refused := group[(group["refused"] > 0) & (group["held"] + group["missed"] == 0)]):
        users = counted(int(refused["users"].min()), "user")
        parts.append(f"trials with {users} were refused")
    return f"{name.replace('_', ' ')}: {'; '.join(parts)}"


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
