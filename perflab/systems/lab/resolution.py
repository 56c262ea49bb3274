"""What the lab can resolve: false alarms, planted effects, and the smallest effect that shows.

For runs of the ``lab_check`` experiment, whose truth is known; :func:`trial_noise` and
:func:`resolving_power` serve any run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.methods.comparison import SMALLEST_SIGNED_RANK, effect_of
from perflab.analysis.methods.quantiles import across_trials
from perflab.analysis.methods.rates import Rate
from perflab.analysis.treatments.decision import POWER, smallest_effect
from perflab.errors import AnalysisError
from perflab.recordings import Run

FACTOR = "service"
COPY = "A"
SLOWER = "+"
OVERLOAD, STALLED = "overload", "stalled"
HEALTHY = "healthy"
KNOWN_COLUMNS = [
    "service", "planted", "expected", "estimate", "low", "high", "n", "holds", "called_different",
]  # fmt: skip

OVERHEAD_COLUMNS = ["who", "typical", "low", "high", "n", "largest"]


def false_alarms(run: Run, response: str = "mean_ms", blocks: int = SMALLEST_SIGNED_RANK) -> Rate:
    """Return how often two copies of one service were called different.

    Copies are paired off and blocks are cut into groups of ``blocks``, so that no trial serves
    two comparisons and the interval of the rate is an honest one.
    """
    wide = _logs(run, response)
    names = [name for name in wide.columns if name.startswith(COPY)]
    hits = n = 0
    for first, second in zip(names[::2], names[1::2], strict=False):
        differences = (wide[second] - wide[first]).dropna()
        for group in _groups(differences, blocks):
            effect = effect_of(group)
            n += 1
            hits += effect.low > 1 or effect.high < 1
    return Rate(hits, n)


def known_effects(
    run: Run, response: str = "mean_ms", blocks: int = SMALLEST_SIGNED_RANK
) -> pd.DataFrame:
    """Return estimate against truth for every service but the first copy, against that one.

    Columns: service, planted (factor on its work, 1 for a copy), expected (what that makes of the
    response, given the work's share of it), estimate, low, high, n (blocks), holds (the interval
    holds what was expected), called_different (text of the :class:`Rate` of groups of ``blocks``
    whose interval excludes 1: false alarms for copies, detections for the others).
    """
    wide = _logs(run, response)
    first, *others = sorted((name for name in wide.columns if not is_fault(name)), key=_place)
    share = work_share(run)
    rows = []
    for name in others:
        differences = (wide[name] - wide[first]).dropna()
        if not len(differences):
            continue
        effect = effect_of(differences)
        expected = 1 + (_planted(name) - 1) * share
        groups = [effect_of(group) for group in _groups(differences, blocks)]
        different = Rate(sum(e.low > 1 or e.high < 1 for e in groups), len(groups))
        rows.append(
            {
                "service": name,
                "planted": _planted(name),
                "expected": expected,
                "estimate": effect.estimate,
                "low": effect.low,
                "high": effect.high,
                "n": effect.n,
                "holds": bool(effect.low <= expected <= effect.high),
                "called_different": different.text(),
            }
        )
    return pd.DataFrame(rows, columns=KNOWN_COLUMNS)


def _planted(level: str) -> float:
    return 1 + float(level[1:-1]) / 100 if level.startswith(SLOWER) else 1.0


def _place(level: str) -> tuple[float, str]:
    return _planted(level), level


def work_share(run: Run) -> float:
    """Return the share of the response time that is the service's own work (copies only)."""
    trials = run.valid_trials()
    own = [
        str(trial)
        for trial, name in zip(trials["trial_id"], trials["treatment"], strict=True)
        if _level(run, name).startswith(COPY)
    ]
    requests = run.requests(trial_ids=own)
    good = requests[requests["error"] == ""]
    if "phase_app_ms" not in good or good.empty:
        raise AnalysisError("the copies have no successful request that tells its work")
    response_ms = (good["done_ns"] - good["planned_ns"]) / 1e6
    return float(good["phase_app_ms"].sum() / response_ms.sum())


def is_fault(level: str) -> bool:
    """Say whether trials of a level have a client that must be refused."""
    return level == OVERLOAD or level.startswith(STALLED)


def refused(run: Run) -> dict[str, Rate]:
    """Return how often clients were refused, by what was planted; healthy ones come last."""
    trials = run.trials()
    trials = trials[~trials["superseded"].astype(bool)]
    levels = [_level(run, name) for name in trials["treatment"]]
    kinds = np.array([level if is_fault(level) else HEALTHY for level in levels], dtype=object)
    planted = dict.fromkeys(item.levels.get(FACTOR, "") for item in run.record.treatments)
    bad = (trials["state"] != "valid").to_numpy()
    return {
        kind: Rate(int(bad[kinds == kind].sum()), int((kinds == kind).sum()))
        for kind in (*filter(is_fault, planted), HEALTHY)
    }


def refused_table(run: Run) -> pd.DataFrame:
    """Return :func:`refused` as a table: client, refused (a text with its 95% interval)."""
    return pd.DataFrame(
        [{"client": kind, "refused": rate.text()} for kind, rate in refused(run).items()]
    )


def overhead(run: Run) -> pd.DataFrame:
    """Return what measuring cost: CPU shares (1.0 = one core) of the client and of the lab.

    The lab is the conductor with its sampler. Columns: who; the typical value over valid trials
    with its 95% interval, low to high (NaN where n is too small); n (trials); largest.
    """
    trials = run.valid_trials()
    rows = []
    for who, column in (
        ("load workers", "cpu_share_client"),
        ("conductor and sampler", "cpu_share_lab"),
    ):
        if column not in trials or not trials[column].notna().any():
            continue
        found = across_trials(trials[column].to_numpy(float))
        rows.append(
            {
                "who": who,
                "typical": found.value,
                "low": found.low,
                "high": found.high,
                "n": found.n,
                "largest": float(trials[column].max()),
            }
        )
    return pd.DataFrame(rows, columns=OVERHEAD_COLUMNS)


@dataclass(frozen=True)
class Resolution:
    """How small an effect a comparison of two treatments finds here.

    ``noise`` is the standard deviation of one trial's log response within treatment and block;
    ``trial_s`` the time of a trial with all that surrounds it; ``effects`` maps minutes to the
    smallest relative difference that is found with 80% probability (inf: none).
    """

    response: str
    noise: float
    trial_s: float
    trials: int
    effects: dict[float, float]

    def text(self) -> str:
        """Say it in a sentence."""
        if not math.isfinite(self.noise):
            return "Too few valid trials to say what this machine can resolve."
        parts = [
            f"below {effect:.1%} in under {minutes:g} minute{'s' if minutes != 1 else ''}"
            for minutes, effect in self.effects.items()
            if math.isfinite(effect)
        ]
        return (
            f"Differences of {self.response} cannot be seen here {', '.join(parts)} "
            f"(two treatments, trials of {self.trial_s:.2g} s, noise of a trial {self.noise:.1%}, "
            f"{POWER:.0%} power; from {self.trials} trials)."
        )


def resolving_power(
    run: Run, response: str = "mean_ms", minutes: Sequence[float] = (1.0, 10.0)
) -> Resolution:
    """Return the smallest effects that runs like this one find within some minutes."""
    levels = [item.name for item in run.record.treatments]
    copies = [name for name in levels if _level(run, name).startswith(COPY)]
    noise, trials = trial_noise(run, response, copies if len(copies) > 1 else levels)
    trial_s = seconds_per_trial(run)
    effects = {}
    for limit in minutes:
        blocks = int(limit * 60 / (2 * trial_s)) if math.isfinite(trial_s) else 0
        usable = math.isfinite(noise) and noise > 0 and blocks >= 2
        effect = smallest_effect(noise * math.sqrt(2), blocks) if usable else math.inf
        effects[limit] = math.expm1(effect) if math.isfinite(effect) else math.inf
    return Resolution(response, noise, trial_s, trials, effects)


def trial_noise(run: Run, response: str, treatments: Sequence[str]) -> tuple[float, int]:
    """Return the standard deviation of log responses beyond treatment and block, and their number.

    From the residuals of the two-way additive model, over blocks in which all are valid; NaN
    where nothing is left to estimate it from.
    """
    wide = _logs(run, response, by_level=False)
    wide = wide.reindex(columns=list(treatments)).dropna()
    freedom = (len(wide) - 1) * (wide.shape[1] - 1)
    if freedom < 1:
        return math.nan, wide.size
    y = wide.to_numpy()
    left = y - y.mean(axis=0) - y.mean(axis=1, keepdims=True) + y.mean()
    return math.sqrt(float((left**2).sum()) / freedom), wide.size


def seconds_per_trial(run: Run) -> float:
    """Return the mean time from one trial's begin to the next one's, in s; NaN below 2.

    Starting services afresh between blocks is in it.
    """
    begins = sorted(value for value in run.trials()["begin_ns"] if value > 0)
    return (begins[-1] - begins[0]) / (len(begins) - 1) / 1e9 if len(begins) > 1 else math.nan


def _groups(differences: pd.Series[Any], blocks: int) -> list[pd.Series[Any]]:
    whole = len(differences) // blocks * blocks
    return [differences.iloc[at : at + blocks] for at in range(0, whole, blocks)]


def _level(run: Run, treatment: str) -> str:
    levels = {item.name: item.levels for item in run.record.treatments}
    return levels.get(treatment, {}).get(FACTOR, "")


def _logs(run: Run, response: str, by_level: bool = True) -> pd.DataFrame:
    """Return log responses of valid trials: a row per block, a column per treatment."""
    trials = run.valid_trials()
    if response not in trials:
        raise AnalysisError(f"the trials have no column '{response}'")
    known = trials[trials[response] > 0]
    wide = known.pivot(index="block", columns="treatment", values=response)
    logs = pd.DataFrame(np.log(wide.to_numpy(float)), index=wide.index, columns=wide.columns)
    if by_level:
        logs.columns = pd.Index([_level(run, str(name)) for name in logs.columns])
        logs = logs[sorted(logs.columns)]
    return logs
