"""The lab's resolution: false alarms, planted effects, and how often a difference is found.

For runs of the ``lab_check`` experiment, whose true effects are known.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from perflab.analysis.starts import effect_of_run
from perflab.errors import AnalysisError
from perflab.recordings import Run
from perflab.statistics.comparison import effect_of
from perflab.statistics.sample_sizes import power
from perflab.statistics.two_samples import Rate
from perflab.trials.run_parameters import RunParameters

# The blocks of a run by default.
USUAL_BLOCKS = int(RunParameters.model_fields["blocks"].default)
# True differences and numbers of blocks whose power is shown.
EFFECTS = (0.02, 0.05, 0.10, 0.25)
BLOCKS = (6, 8, 12, 14)
FACTOR = "service"
COPY = "A"
SLOWER = "+"
OVERLOAD, STALLED = "overload", "stalled"
HEALTHY = "healthy"
KNOWN_COLUMNS = [
    "service", "planted", "expected", "estimate", "low", "high", "n", "holds", "called_different",
]  # fmt: skip


def false_alarms(run: Run, response: str = "mean_ms", blocks: int = USUAL_BLOCKS) -> Rate:
    """Return how often two copies of the same service were called different.

    Copies are paired off and blocks are cut into groups of ``blocks``, so that no trial serves
    two comparisons and the interval of the rate holds.
    """
    wide = _log_responses(run, response)
    names = [name for name in wide.columns if name.startswith(COPY)]
    rates = [
        _called_different((wide[second] - wide[first]).dropna(), blocks)
        for first, second in zip(names[::2], names[1::2], strict=False)
    ]
    return Rate(sum(rate.hits for rate in rates), sum(rate.n for rate in rates))


def _called_different(differences: pd.Series[Any], blocks: int) -> Rate:
    """Return how many groups of ``blocks`` have an interval that excludes no effect."""
    whole = len(differences) // blocks * blocks
    groups = (differences.iloc[at : at + blocks] for at in range(0, whole, blocks))
    effects = [effect_of(group) for group in groups]
    return Rate(sum(effect.low > 1 or effect.high < 1 for effect in effects), len(effects))


def known_effects(run: Run, response: str = "mean_ms", blocks: int = USUAL_BLOCKS) -> pd.DataFrame:
    """Return estimated and expected effect of every other service over the first copy.

    Columns: service, planted (factor on its work, 1 for a copy), expected (the effect of that
    factor on the response, given the work's share of it), estimate, low, high, n (blocks), holds
    (the interval holds the expected effect), called_different (text of the :class:`Rate` of groups
    of ``blocks`` whose interval excludes 1: false alarms for copies, detections for the others).
    The table is empty if no valid trial of a copy tells the response and the work's share.
    """
    try:
        wide, share = _log_responses(run, response), work_share(run)
    except AnalysisError:
        return pd.DataFrame(columns=KNOWN_COLUMNS)
    services = (name for name in wide.columns if not is_fault(name))
    first, *others = sorted(services, key=lambda name: (_planted(name), name))
    rows = []
    for name in others:
        differences = (wide[name] - wide[first]).dropna()
        if not len(differences):
            continue
        effect = effect_of_run(run, differences)
        expected = 1 + (_planted(name) - 1) * share
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
                "called_different": _called_different(differences, blocks).text(),
            }
        )
    return pd.DataFrame(rows, columns=KNOWN_COLUMNS)


def _planted(level: str) -> float:
    return 1 + float(level[1:-1]) / 100 if level.startswith(SLOWER) else 1.0


def work_share(run: Run) -> float:
    """Return the share of the copies' response time that is the service's own work."""
    trials = run.valid_trials()
    copies = trials[_levels(run, trials).str.startswith(COPY)]
    requests = run.requests(trial_ids=copies["trial_id"].tolist())
    successes = requests[requests["error"] == ""]
    if "phase_app_ms" not in successes or successes.empty:
        raise AnalysisError(
            "no successful request of a copy reports the time of its work (phase_app_ms)"
        )
    response_ms = (successes["done_ns"] - successes["planned_ns"]) / 1e6
    return float(successes["phase_app_ms"].sum() / response_ms.sum())


def is_fault(level: str) -> bool:
    """Return whether trials of a level have a client that must be refused."""
    return level == OVERLOAD or level.startswith(STALLED)


def refused(run: Run) -> pd.DataFrame:
    """Return how often clients were refused, by planted fault; healthy clients come last.

    Columns: client, refused (text of a :class:`Rate` with its 95% interval).
    """
    trials = run.current_trials()
    levels = _levels(run, trials)
    kinds = levels.where(levels.map(is_fault), HEALTHY)
    faults = [treatment.levels[FACTOR] for treatment in run.record.treatments]
    rows = []
    for kind in (*filter(is_fault, faults), HEALTHY):
        states = trials["state"][kinds == kind]
        rate = Rate(int((states != "valid").sum()), len(states))
        rows.append({"client": kind, "refused": rate.text()})
    return pd.DataFrame(rows)


def power_here(run: Run, response: str = "mean_ms") -> pd.DataFrame:
    """Return how often true differences are found at the noise of this run's copies.

    A row for each difference, a column for each number of blocks. The table is empty if there are
    too few valid trials to know the noise.
    """
    try:
        noise = copies_noise(run, response)
    except AnalysisError:
        return pd.DataFrame()
    return pd.DataFrame(
        {
            "noise of a trial": f"{noise:.1%}",
            "true difference": f"{effect:.0%}",
            **{
                f"{blocks} blocks": f"{power(math.log1p(effect), math.sqrt(2) * noise, blocks):.0%}"
                for blocks in BLOCKS
            },
        }
        for effect in EFFECTS
    )


def copies_noise(run: Run, response: str = "mean_ms") -> float:
    """Return the standard deviation of a trial's log response among copies of one block.

    It includes the lasting differences between processes of one program.

    Raises
    ------
    AnalysisError
        There are too few valid trials of copies.
    """
    wide = _log_responses(run, response)
    copies = wide[[name for name in wide.columns if name.startswith(COPY)]]
    freedom = (copies.count(axis=1) - 1).clip(lower=0)
    if (freedom > 0).sum() < 2:
        raise AnalysisError(
            "there are too few valid trials of copies to know the noise; raise blocks"
        )
    return math.sqrt(float((copies.var(axis=1) * freedom).sum() / freedom.sum()))


def _levels(run: Run, trials: pd.DataFrame) -> pd.Series[Any]:
    """Return the level of each trial."""
    levels = {item.name: item.levels.get(FACTOR, "") for item in run.record.treatments}
    return trials["treatment"].map(levels)


def _log_responses(run: Run, response: str) -> pd.DataFrame:
    """Return log responses of valid trials: a row per block, a column per level."""
    trials = run.valid_trials()
    if response not in trials:
        raise AnalysisError(f"the trials have no column '{response}'")
    positive = trials[trials[response] > 0]
    log = np.log(positive[response].astype(float))
    table = positive.assign(level=_levels(run, positive), log=log)
    return table.pivot(index="block", columns="level", values="log")
