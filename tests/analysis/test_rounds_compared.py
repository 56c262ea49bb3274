"""Pairs within rounds, simulated: machines that drift, and neighbours that resemble each other."""

from __future__ import annotations

import math
from itertools import chain

import numpy as np
import pytest

from perflab.analysis.methods.serial import mean_of_series, standard_error
from perflab.analysis.treatments.rounds import (
    THESE_PROCESSES,
    cpu_per_request_us,
    effect_of_starts,
    ratios_of_rounds,
)
from perflab.errors import AnalysisError
from perflab.trials.rounds import Rounds

SETS, ROUNDS, NOISE = 1500, 60, 0.03
EFFECT = 0.02


def speeds(random: np.random.Generator, n: int, correlation: float) -> np.ndarray:
    """Return the log speed of a machine over n slices: it wanders by 1.5, and has weather."""
    wander = np.cumsum(random.normal(0, 0.4 / math.sqrt(n), n))
    weather = np.zeros(n)
    for number, shock in enumerate(random.normal(0, NOISE, n)):
        weather[number] = correlation * weather[number - 1] + shock
    return wander + weather


def sliced(random: np.random.Generator, correlation: float, effect: float) -> np.ndarray:
    """Return log ratios of rounds of two slices in random order; noise has neighbours, too."""
    machine = speeds(random, 2 * ROUNDS, correlation)
    logs = {"a": [], "b": []}
    for place, name in enumerate(chain(*ORDER)):
        own = effect if name == "b" else 0.0
        logs[name].append(machine[place] + own + random.normal(0, NOISE))
    return ratios_of_rounds(np.exp(logs["b"]), np.exp(logs["a"]))


ORDER = Rounds(("a", "b"), ROUNDS, seed=3).order()


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_intervals_of_slices_hold_the_truth_as_often_as_they_say_on_a_machine_that_drifts(
    correlation: float,
) -> None:
    random = np.random.default_rng(7)
    held = false_alarms = 0
    for _ in range(SETS):
        found = effect_of_starts([sliced(random, correlation, EFFECT)])
        held += found.low <= math.exp(EFFECT) <= found.high
        false_alarms += effect_of_starts([sliced(random, correlation, 0.0)]).p_value <= 0.05
    assert 0.93 <= held / SETS <= 0.97
    assert false_alarms / SETS <= 0.065


def test_slices_are_much_narrower_than_whole_trials_in_the_same_time_where_a_machine_drifts() -> (
    None
):
    random = np.random.default_rng(8)
    whole, turns = [], []
    for _ in range(100):
        machines = [speeds(random, 2 * ROUNDS, 0.5) for _ in range(8)]
        noise = [random.normal(0, NOISE, 2 * ROUNDS) for _ in machines]
        logs = [machine + own for machine, own in zip(machines, noise, strict=True)]
        # One whole trial of each, in random order; or the same time in slices.
        swapped = random.choice([-1, 1], len(logs))
        halves = [
            np.array([way * (own[ROUNDS:].mean() - own[:ROUNDS].mean())])
            for way, own in zip(swapped, logs, strict=True)
        ]
        rounds = [PLACES * (own[1::2] - own[::2]) for own in logs]
        whole.append(width(halves))
        turns.append(width(rounds))
    assert 3 * np.mean(turns) < np.mean(whole)


def width(starts: list[np.ndarray]) -> float:
    found = effect_of_starts(starts)
    return math.log(found.high / found.low)


# 1 where "b" has the second slice of a round, -1 where it has the first.
PLACES = np.array([1 if order[1] == "b" else -1 for order in ORDER])


def autocorrelated(random: np.random.Generator, n: int, correlation: float) -> np.ndarray:
    x = np.zeros(n + 50)
    for number, shock in enumerate(random.normal(0, 1, n + 50)):
        x[number] = correlation * x[number - 1] + shock
    return x[50:]


@pytest.mark.parametrize(("correlation", "n"), [(0.0, 20), (0.3, 20), (0.5, 60), (-0.3, 100)])
def test_the_mean_of_a_series_has_an_interval_that_knows_of_its_neighbours(
    correlation: float, n: int
) -> None:
    random = np.random.default_rng(11)
    found = [mean_of_series(autocorrelated(random, n, correlation)) for _ in range(SETS)]
    held = sum(each.low <= 0 <= each.high for each in found) / SETS
    assert 0.925 <= held <= 0.97


def test_an_interval_of_neighbours_taken_as_independent_would_hold_too_seldom() -> None:
    random = np.random.default_rng(12)
    naive = knowing = 0
    for _ in range(300):
        x = autocorrelated(random, 60, 0.5)
        naive += abs(x.mean()) <= 2 * x.std(ddof=1) / math.sqrt(60)
        knowing += abs(x.mean()) <= 2.45 * standard_error(x)
    assert naive / 300 < 0.85
    assert knowing / 300 > 0.91


def processes(random: np.random.Generator, starts: int) -> list[np.ndarray]:
    """Return rounds of copies: each process has a speed of its own for as long as it lives."""
    luck = random.normal(0, 0.015, (starts, 2))
    return [b - a + random.normal(0, NOISE, ROUNDS) for a, b in luck]


def test_copies_that_are_started_afresh_are_called_different_as_seldom_as_is_said() -> None:
    random = np.random.default_rng(13)
    alarms = sum(effect_of_starts(processes(random, 8)).p_value <= 0.05 for _ in range(SETS))
    assert alarms / SETS <= 0.065


def test_rounds_of_one_start_tell_of_these_very_processes_and_say_so() -> None:
    random = np.random.default_rng(14)
    found = [effect_of_starts(processes(random, 1)) for _ in range(200)]
    assert all(each.warnings == (THESE_PROCESSES,) for each in found)
    # As statements about the programs most of them would be wrong.
    assert sum(each.p_value <= 0.05 for each in found) > 100


def test_starts_are_the_witnesses_where_there_are_several() -> None:
    starts = [np.full(30, EFFECT + shift) for shift in (-0.01, 0.0, 0.01)]
    found = effect_of_starts(starts)
    assert found.n == 3
    assert found.estimate == pytest.approx(math.exp(EFFECT))
    assert THESE_PROCESSES not in found.warnings


def test_too_few_rounds_have_no_interval() -> None:
    with pytest.raises(AnalysisError, match="measure 20 at least"):
        effect_of_starts([np.zeros(19)])


def test_a_round_without_a_value_is_left_out_and_one_of_nothing_is_refused() -> None:
    found = ratios_of_rounds([2.0, math.nan, 4.0], [1.0, 1.0, 2.0])
    assert found.tolist() == pytest.approx([math.log(2)] * 2)
    with pytest.raises(AnalysisError, match="lengthen the slices"):
        ratios_of_rounds([2.0, 0.0], [1.0, 1.0])


def test_cpu_of_a_round_is_its_requests_but_for_what_runs_without_load() -> None:
    # 50 ms awake beyond a window of 300 ms, at a tenth of a core without load: 5 ms of it.
    found = cpu_per_request_us([105e6, 105e6], [1000, 0], [0.35, 0.35], [0.3, 0.3], 0.1)
    assert found[0] == pytest.approx(100)
    assert math.isnan(found[1])
