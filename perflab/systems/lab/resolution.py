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

from perflab.analysis.methods.comparison import effect_of
from perflab.analysis.methods.paired_power import POWER, smallest_effect
from perflab.analysis.methods.quantiles import across_trials
from perflab.analysis.methods.rates import Rate
from perflab.analysis.treatments.resolving import as_shares, power_table
from perflab.errors import AnalysisError
from perflab.experiments.experiment import RunParameters
from perflab.recordings import Run

# What a run has that nobody gave a number of blocks.
USUAL_BLOCKS = int(RunParameters.model_fields["blocks"].default)
FACTOR = "service"
COPY = "A"
SLOWER = "+"
OVERLOAD, STALLED = "overload", "stalled"
HEALTHY = "healthy"
KNOWN_COLUMNS = [
    "service", "planted", "expected", "estimate", "low", "high", "n", "holds", "called_different",
]  # fmt: skip

OVERHEAD_COLUMNS = ["who", "typical", "low", "high", "n", "largest"]


def false_alarms(run: Run, response: str = "mean_ms", blocks: int = USUAL_BLOCKS) -> Rate:
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


def known_effects(run: Run, response: str = "mean_ms", blocks: int = USUAL_BLOCKS) -> pd.DataFrame:
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
    ``processes`` that between processes of one program beyond it, where they live for several
    blocks (0 where they were started afresh for every block: ``noise`` then holds it);
    ``trial_s`` the time of a trial with all that surrounds it; ``effects`` maps minutes to the
    smallest relative difference that is found with 80% probability (inf: none).
    """

    response: str
    noise: float
    trial_s: float
    trials: int
    effects: dict[float, float]
    processes: float = 0.0

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
            f"{POWER:.0%} power; from {self.trials} trials).{self._of_processes()}"
        )

    def _of_processes(self) -> str:
        if not self.processes > 0:
            return ""
        return (
            f" Processes of one program differ by {self.processes:.1%} for as long as they live, "
            "which is in it: more blocks help only where services are started afresh."
        )


def resolving_power(
    run: Run, response: str = "mean_ms", minutes: Sequence[float] = (1.0, 10.0)
) -> Resolution:
    """Return the smallest effects that runs like this one find within some minutes."""
    names = _copies(run)
    noise, trials = trial_noise(run, response, names)
    processes = process_noise(run, response, names)
    trial_s = seconds_per_trial(run)
    effects = {}
    for limit in minutes:
        blocks = int(limit * 60 / (2 * trial_s)) if math.isfinite(trial_s) else 0
        usable = math.isfinite(noise) and noise > 0 and blocks >= 2
        lives = math.ceil(blocks / (_fresh_blocks(run) or max(blocks, 1)))
        # What a process keeps for life averages out over lives, not over blocks.
        of_block = math.sqrt(2 * (noise**2 + processes**2 * blocks / lives)) if usable else 0.0
        effect = smallest_effect(of_block, blocks) if usable else math.inf
        effects[limit] = math.expm1(effect) if math.isfinite(effect) else math.inf
    return Resolution(response, noise, trial_s, trials, effects, processes)


def planted_found(run: Run, response: str = "mean_ms", blocks: int = USUAL_BLOCKS) -> list[str]:
    """Say for each planted service how often so many blocks of the run called it different."""
    table = known_effects(run, response, blocks)
    return [
        f"{row['service']}: {blocks} blocks called it different in {row['called_different']}"
        for row in table[table["planted"] > 1].to_dict("records")
    ]


def power_here(run: Run, response: str = "mean_ms", sets: int = 200) -> pd.DataFrame:
    """Return how often true differences are found at the noise of this run's copies.

    See :func:`perflab.analysis.treatments.resolving.power_table`; every share has its interval.
    Empty where there are too few valid trials to tell the noise.
    """
    try:
        noise = [copies_noise(run, response)]
    except AnalysisError:
        noise = []
    return as_shares(power_table(noise, sets=sets))


def copies_noise(run: Run, response: str = "mean_ms") -> float:
    """Return the deviation of a trial's log response, processes included, from the copies.

    Raises
    ------
    AnalysisError
        There are too few valid trials of copies.
    """
    names = _copies(run)
    noise, _ = trial_noise(run, response, names)
    if not math.isfinite(noise):
        raise AnalysisError("too few valid trials of copies to tell the noise; raise blocks")
    return math.hypot(noise, process_noise(run, response, names))


def _copies(run: Run) -> list[str]:
    """Return the treatments that are copies of one service; all, where there are no two."""
    levels = [item.name for item in run.record.treatments]
    found = [name for name in levels if _level(run, name).startswith(COPY)]
    return found if len(found) > 1 else levels


def _fresh_blocks(run: Run) -> int:
    """Return after how many blocks services are started afresh; 0: never."""
    return int(run.record.parameters.get("fresh_blocks", 1))


def process_noise(run: Run, response: str, treatments: Sequence[str]) -> float:
    """Return the deviation between processes of copies that live for several blocks, on logs.

    From the variance of their means over a life beyond what trials scatter; 0 where every block
    has processes of its own, whose differences are in the noise of trials, or where no copies are.
    """
    every = _fresh_blocks(run)
    if every == 1 or not all(_level(run, name).startswith(COPY) for name in treatments):
        return 0.0
    wide = _logs(run, response, by_level=False).reindex(columns=list(treatments)).dropna()
    lives = wide.index.to_numpy() // every if every else np.zeros(len(wide), dtype=int)
    y = wide.to_numpy() - wide.to_numpy().mean(axis=1, keepdims=True)
    between = within = 0.0
    freedom = [0, 0]
    for life in np.unique(lives):
        own = y[lives == life]
        between += len(own) * float((own.mean(axis=0) ** 2).sum())
        within += float(((own - own.mean(axis=0)) ** 2).sum())
        freedom = [freedom[0] + y.shape[1] - 1, freedom[1] + (len(own) - 1) * (y.shape[1] - 1)]
    if min(freedom) < 1:
        return 0.0
    beyond = between / freedom[0] - within / freedom[1]
    return math.sqrt(max(0.0, beyond) * len(np.unique(lives)) / len(wide))


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
