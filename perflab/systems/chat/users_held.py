"""How many users each configuration held within the study's three targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from perflab.analysis.typical_values import typical_values
from perflab.figures.canvas import LabFigure, empty_figure
from perflab.figures.charts import Axis, Intervals, Lines, Plane, Planes, Points, Rules
from perflab.figures.origin import TRIAL, Page, trials_shown
from perflab.figures.theme import Style, appearance
from perflab.figures.view import View
from perflab.recordings import Run, fault
from perflab.statistics.in_words import counted
from perflab.statistics.two_samples import Rate
from perflab.systems.chat.ladder import targets_ms

# Levels that name a rung or follow from its users; all other levels make its configuration.
_OF_A_RUNG = ("rung", "users", "join_s", "scenario")
TITLE = "users held within the targets"
# An interval may reach this many times beyond the trials.
BEYOND = 3.0
SAID, TYPICAL, TARGET = "said", "typical value", "target"
HELD_COLUMNS = [
    "what",
    "configuration",
    "users",
    "percentile",
    "state",
    "ms",
    "low",
    "high",
    "words",
]


def users_held(run: Run) -> pd.DataFrame:
    """Return one row per rung: how many of its trials meet all targets.

    Columns: configuration (the name of its first rung, without a number of users unless another
    configuration has that name), users, treatment (its name); held, missed, refused (trials);
    first_missed (the target missed most often, or empty); and the typical value over valid trials
    of messages_per_s and of every response that has a target, each with ``_low``, ``_high`` (95%,
    NaN where n is too small) and ``_n``.

    A trial that failed or is invalid counts as missed if the service alone is at fault (see
    :func:`perflab.recordings.fault`), else as refused; one with too few deliveries for a percentile
    that has a target counts as refused, too.
    """
    trials = run.current_trials()
    # Where every trial failed, nothing was measured.
    needed = ["messages_per_s", *targets_ms()]
    trials = trials.reindex(columns=list(dict.fromkeys([*trials.columns, *needed])))
    configurations = _configurations([treatment.levels for treatment in run.record.treatments])
    rows = [
        {
            "configuration": configurations[treatment.levels["rung"]],
            "users": int(treatment.levels["users"]),
            "treatment": treatment.name,
            **_counts(trials[trials["treatment"] == treatment.name]),
        }
        for treatment in run.record.treatments
    ]
    order = [*configurations.values()]
    rows.sort(key=lambda row: (order.index(row["configuration"]), row["users"]))
    return pd.DataFrame(rows)


def _configurations(rungs: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the name of the configuration of each rung, by the rung's name."""
    keys = {
        levels["rung"]: tuple(levels[name] for name in levels if name not in _OF_A_RUNG)
        for levels in rungs
    }
    names: dict[tuple[str, ...], str] = {}
    for rung, key in keys.items():
        stem = _without_users(rung)
        is_of_another = stem in names.values() or keys.get(stem, key) != key
        names.setdefault(key, rung if is_of_another else stem)
    return {rung: names[key] for rung, key in keys.items()}


def _counts(trials: pd.DataFrame) -> dict[str, Any]:
    limits = targets_ms()
    is_valid = trials["state"] == "valid"
    valid = trials[is_valid]
    misses = pd.DataFrame({name: valid[name] > most for name, most in limits.items()})
    missed = misses.any(axis=1)
    unknown = valid[list(limits)].isna().any(axis=1) & ~missed
    by_service = sum(fault(reasons) == "server" for reasons in trials.loc[~is_valid, "reasons"])
    return {
        "held": int((~missed & ~unknown).sum()),
        "missed": int(missed.sum()) + by_service,
        "refused": int(unknown.sum()) + int((~is_valid).sum()) - by_service,
        "first_missed": str(misses.sum().idxmax()) if missed.any() else "",
        **typical_values(valid, ["messages_per_s", *limits]),
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
    undecided = below[below["refused"] > 0]
    parts = []
    if len(held):
        best = held.iloc[-1]
        undecided = undecided[undecided["users"] > best["users"]]
        parts.append(f"{_users(best)} and {_volume(best)} held in {_share(best, 'held')}")
    parts += [
        f"with {_users(row)} nothing is shown, {_share(row, 'held')} held, the others were refused"
        for row in undecided.to_dict("records")
    ]
    if len(missing):
        worst = missing.iloc[0]
        # Without a missed target the service failed otherwise.
        why = "failed through the service's own fault"
        if target := str(worst["first_missed"]):
            why = f"missed a target ({_percentile(target)})"
        refused = f", {int(worst['refused'])} were refused" if worst["refused"] else ""
        parts.append(f"with {_users(worst)}, {_share(worst, 'missed')} {why}{refused}")
    else:
        parts.append("no limit was found" if len(undecided) else "more were not tried")
    return f"{name.replace('_', ' ')}: {'; '.join(parts)}"


def _users(row: Mapping[Any, Any] | pd.Series[Any]) -> str:
    return counted(int(row["users"]), "user")


def _share(row: Mapping[Any, Any] | pd.Series[Any], what: str) -> str:
    """Return ``3 of 4 trials [19%, 99%]``, refused trials included."""
    rate = Rate(int(row[what]), int(row["held"] + row["missed"] + row["refused"]))
    return f"{rate.hits} of {counted(rate.n, 'trial')} {rate.bounds()}"


def _volume(best: pd.Series[Any]) -> str:
    value, low, high = (best[f"messages_per_s{end}"] for end in ("", "_low", "_high"))
    interval = "messages/s (no interval)"
    if not math.isnan(low):
        interval = f"[{low:,.0f}, {high:,.0f}] messages/s"
    return f"{value:,.0f} {interval}"


def _percentile(response: str) -> str:
    return response.removeprefix("delivery_").removesuffix("_ms")


def users_held_table(run: Run) -> pd.DataFrame:
    """Return percentiles of deliveries by configuration and users, and the study's targets.

    ``what`` is a trial that did not fail (with its state), a typical value of several trials (with
    its 95% interval), a target, or ``said``: a sentence on a configuration, in ``words``.
    """
    rungs = _of_several(users_held(run))
    if rungs.empty:
        return pd.DataFrame(columns=HELD_COLUMNS)
    names = rungs["configuration"].drop_duplicates()
    sentences = pd.DataFrame({"what": SAID, "configuration": names, "words": held_sentences(rungs)})
    trials = trials_shown(run).reindex(columns=["treatment", "state", *targets_ms()])
    trials = trials.merge(rungs[["configuration", "users", "treatment"]], on="treatment")
    parts = [
        part.assign(percentile=_percentile(response))
        for response, most_ms in targets_ms().items()
        for part in (
            trials.assign(what=TRIAL, ms=trials[response].astype(float)),
            _typical(rungs, response),
            pd.DataFrame([{"what": TARGET, "ms": most_ms}]),
        )
    ]
    return pd.concat([sentences, *parts], ignore_index=True).reindex(columns=HELD_COLUMNS)


def _of_several(rungs: pd.DataFrame) -> pd.DataFrame:
    """Return the rungs of configurations that have several numbers of users."""
    return rungs[rungs.groupby("configuration")["users"].transform("nunique") > 1]


def _typical(rungs: pd.DataFrame, response: str) -> pd.DataFrame:
    several = rungs[rungs[f"{response}_n"] > 1]
    numbers = {"ms": response, "low": f"{response}_low", "high": f"{response}_high"}
    values = {name: several[column].astype(float) for name, column in numbers.items()}
    return several[["configuration", "users"]].assign(what=TYPICAL, **values)


def varies_users(run: Run) -> bool:
    """Return whether a configuration of the run has several numbers of users."""
    return {"rung", "users"} <= set(run.record.factors) and len(_of_several(users_held(run))) > 0


def draw_users_held(table: pd.DataFrame, page: Page) -> LabFigure:
    """Draw three percentiles against users."""
    sentences = " ".join(f"{words[:1].upper()}{words[1:]}." for words in table["words"] if words)
    if not table.loc[table["what"] == TRIAL, "ms"].notna().any():
        return empty_figure(page, TITLE, f"{sentences} {page.nothing}")
    styles = {
        name: Style(*appearance(place), label=name.replace("_", " "))
        for place, name in enumerate(table.loc[table["what"] == SAID, "configuration"])
    }
    style: dict[str, Any] = {"by": "configuration", "styles": styles}
    axes = Axis("users"), Axis("latency of deliveries, ms (log)", log=True)
    shares = sorted(set(table["percentile"]) - {""})
    chart = Planes(
        TITLE,
        f"{sentences} Small points: trials (hollow: refused); lines: typical values, where there"
        " are several, with 95% intervals where n allows them (an arrow: it goes on).",
        layers=(
            Points((TRIAL,), how={"s": 9, "alpha": 0.8, "zorder": 2}, keyed=False,
                   **style),
            Lines((TYPICAL,), marked=True, **style),
            Intervals((TYPICAL,), along="y", beyond=BEYOND, among=(TRIAL,),
                      lw=1.1, size=0, keyed=False, **style),
            Rules((TARGET,), TARGET, along="y"),
        ),
        planes={share: Plane(*axes, title=share) for share in shares},
        panel="percentile",
        x="users",
        y="ms",
        across=3,
        height_in=3.2,
        share_y=True,
    )  # fmt: skip
    return chart.draw(table, page)


USERS_HELD = View("users_held", TITLE, users_held_table, draw_users_held, suits=varies_users)
