"""Where a load changes what it measures, its blocks are told to rise or fall."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.doubts.block_trend import block_trend, changes_of, rise_within
from perflab.analysis.evaluation import evaluate
from perflab.analysis.noise import noise_flags
from perflab.analysis.scope import ALSO_AT_THE_END
from perflab.recordings import Run
from perflab.recordings.responses import drift_column
from tests.support.synthetic import ON_AND_OFF, UNPUBLISHED, contrast_of, write_run

BLOCKS = 8
RISING = np.linspace(1.0, 1.8, BLOCKS)


def run_of(tmp_path, factors: np.ndarray, probes: np.ndarray, *methods: str) -> Run:
    """Write a run whose response times have these factors, and whose load has these methods."""
    decided = contrast_of(ON_AND_OFF[1], ON_AND_OFF[0], **UNPUBLISHED)
    run = write_run(
        tmp_path, blocks=BLOCKS, noise=0.01, block_noise=0.01, contrasts=[decided],
        drifts={0: [0.0] * BLOCKS, 1: [0.001, -0.001] * (BLOCKS // 2)},
    )  # fmt: skip
    trials = run.trials()
    trials["mean_ms"] *= trials["block"].map(pd.Series(factors))
    trials["cpu_probe_before_ms"] *= trials["block"].map(pd.Series(probes))
    run._trials = trials
    treatments = [
        item.model_copy(update={"parts": {"workload": "w"}}) for item in run.record.treatments
    ]
    mix = [{"request": {"method": method}} for method in methods or ("GET",)]
    parts = {"w": {**mix[0], "mix": mix if len(mix) > 1 else []}}
    run.record = run.record.model_copy(update={"treatments": treatments, "parts": parts})
    return run


@pytest.mark.parametrize(
    ("methods", "cause"),
    [
        (["POST"], "the load writes (POST)"),
        (["GET", "PUT"], "the load writes (PUT)"),
        (["GET"], "something outlives the blocks"),
    ],
)
def test_times_that_rise_from_block_to_block_are_told_with_their_cause(
    tmp_path, methods: list[str], cause: str
) -> None:
    run = run_of(tmp_path, RISING, np.ones(BLOCKS), *methods)
    (told,) = noise_flags(run)
    assert told.startswith("response time rose by ")
    assert told.endswith(f" from the first block to the last, in all treatments: {cause}")


@pytest.mark.promise
def test_what_rises_from_block_to_block_is_not_said_to_hold_at_the_end_of_the_load(
    tmp_path,
) -> None:
    (steady,) = evaluate(run_of(tmp_path / "steady", np.ones(BLOCKS), np.ones(BLOCKS)))
    assert steady.scope == ALSO_AT_THE_END
    (rising,) = evaluate(run_of(tmp_path / "rising", RISING, np.ones(BLOCKS), "POST"))
    assert rising.effect == steady.effect, "the answer itself stays"
    assert rising.scope == ""


@pytest.mark.parametrize(
    ("factors", "probes"),
    [
        (RISING, RISING),
        (np.ones(BLOCKS), RISING),
        (np.linspace(1, 1.05, BLOCKS), np.ones(BLOCKS)),
        (np.r_[1.5, np.ones(BLOCKS - 1)], np.ones(BLOCKS)),
    ],
    ids=["the machine slows down", "times are no CPU", "little", "the first block alone"],
)
def test_a_machine_that_slows_down_and_a_first_block_are_no_trend(
    tmp_path, factors: np.ndarray, probes: np.ndarray
) -> None:
    assert block_trend(run_of(tmp_path, factors, probes)) is None


def test_one_treatment_alone_is_an_effect_and_no_trend() -> None:
    times = pd.DataFrame({"old": np.ones(BLOCKS), "new": RISING**2})
    speeds = pd.Series(np.ones(BLOCKS))
    assert changes_of(times, speeds) == ()
    old, new = changes_of(times.assign(old=1 / RISING, new=1 / RISING), speeds)
    assert old == new < 0, "faster from block to block is a trend, too"


def test_blocks_that_are_all_equal_have_no_trend() -> None:
    times = pd.DataFrame({"old": np.ones(BLOCKS), "new": np.full(BLOCKS, 2.0)})
    assert changes_of(times, pd.Series(np.ones(BLOCKS))) == ()


def test_one_block_that_lies_apart_does_not_move_the_change() -> None:
    times, speeds = pd.DataFrame({"old": RISING, "new": RISING}), pd.Series(np.ones(BLOCKS))
    apart = times.copy()
    apart.iloc[0] /= 10
    assert changes_of(apart, speeds) == pytest.approx(changes_of(times, speeds), rel=0.2)
    assert changes_of(times, speeds)[0] == pytest.approx(np.log(1.8), rel=0.1)


def few(*throughputs: float, machine: bool = False) -> tuple[float, ...]:
    """Return the changes told of a few blocks in which two sides serve so much."""
    times = 1 / np.array(throughputs)
    speeds = times if machine else np.ones(len(times))
    return changes_of(pd.DataFrame({"old": times, "new": 1.1 * times}), pd.Series(speeds))


@pytest.mark.parametrize(
    ("throughputs", "rise"),
    [
        ((1033, 606, 632, 522), 1033 / 522),
        ((638, 465, 420, 380, 296), 638 / 296),
        ((300, 230, 160), 300 / 160),
    ],
)
@pytest.mark.promise
def test_a_store_that_fills_is_told_with_few_blocks(
    throughputs: tuple[float, ...], rise: float
) -> None:
    assert few(*throughputs) == pytest.approx([np.log(rise)] * 2)
    assert few(*throughputs, machine=True) == (), "the machine slows down"


@pytest.mark.parametrize(
    "throughputs",
    [(500, 700, 720, 690), (1000, 700, 900, 600), (1000, 900, 850), (1000, 500)],
    ids=["a slow first block", "up and down", "little", "two blocks"],
)
def test_few_blocks_that_do_not_all_rise_far_are_no_trend(throughputs: tuple[float, ...]) -> None:
    assert few(*throughputs) == ()


def test_a_few_equal_blocks_are_told_to_rise_in_less_than_one_of_a_hundred_runs() -> None:
    random = np.random.default_rng(3)
    told = 0
    for _ in range(300):
        times = np.exp(random.normal(0, 0.1, (3, 2)))
        told += bool(changes_of(pd.DataFrame(times), pd.Series(np.ones(3))))
    assert told <= 2


def test_blocks_without_times_or_probes_do_not_hinder_an_answer(tmp_path) -> None:
    run = run_of(tmp_path, RISING, np.ones(BLOCKS))
    trials = run.trials()
    trials.loc[trials["block"] == 1, "mean_ms"] = np.nan
    trials.loc[trials["block"] == 3, "cpu_probe_before_ms"] = np.nan
    run._trials = trials
    assert block_trend(run) is not None


@pytest.mark.parametrize(("drift", "is_told"), [(0.4, True), (0.05, False), (-0.4, False)])
def test_response_times_that_rise_within_each_load_are_told(tmp_path, drift, is_told) -> None:
    run = run_of(tmp_path, np.ones(BLOCKS), np.ones(BLOCKS), "POST")
    trials, column = run.trials(), drift_column("mean_ms")
    run._trials = trials.assign(**{column: drift})
    told = rise_within(run)
    assert bool(told) == is_told
    if is_told:
        assert "at its end it is 1.5 times its mean (POST writes)" in told
        assert "--rate" in told
    # One side alone is the scope of that comparison.
    first = trials["treatment"] == trials["treatment"].iloc[0]
    run._trials = trials.assign(**{column: first * drift})
    assert rise_within(run) == ""
