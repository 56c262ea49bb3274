"""What a run of known truth says of the lab."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from perflab.errors import AnalysisError
from perflab.recordings import Run
from perflab.systems.lab.resolution import (
    copies_noise,
    false_alarms,
    known_effects,
    overhead,
    planted_found,
    power_here,
    process_noise,
    refused,
    refused_table,
    resolving_power,
    trial_noise,
    work_share,
)
from tests.synthetic import APP_SHARE, Planted, write_run

APP = {"app": 0.8}
# What is planted of the time at the service, times the mean of its spread; of the response 0.2%
# are outside of the service.
WORK = APP_SHARE * 0.8 * (0.9 + 1.05) / 2


def lab_check(tmp_path, **changes) -> Run:
    services = [("A1", 1.0), ("A2", 1.0), ("A3", 1.0), ("A4", 1.0), ("+20%", 1 / 1.18)]
    treatments = tuple(
        Planted({"service": level}, ratio, level, dict(APP)) for level, ratio in services
    )
    options = {"blocks": 12, "noise": 0.02, "requests": 60, **changes}
    return write_run(
        tmp_path, treatments=treatments, experiment="lab_check", contrasts=[], **options
    )


def test_copies_are_compared_without_using_a_trial_twice(tmp_path) -> None:
    rate = false_alarms(lab_check(tmp_path), blocks=6)
    assert rate.n == 4
    assert rate.hits <= 1


def test_a_copy_that_is_not_one_is_called_different(tmp_path) -> None:
    treatments = (Planted({"service": "A1"}, 1.0), Planted({"service": "A2"}, 1.3))
    run = write_run(tmp_path, treatments=treatments, blocks=12, noise=0.02, contrasts=[])
    assert false_alarms(run, blocks=6).hits == 2


def test_planted_effects_are_held_against_what_they_make_of_the_response(tmp_path) -> None:
    run = lab_check(tmp_path)
    table = known_effects(run, blocks=6).set_index("service")
    row = table.loc["+20%"]
    assert row["planted"] == pytest.approx(1.2)
    assert row["expected"] == pytest.approx(1 + 0.2 * WORK, abs=0.002)
    assert row["low"] < 1.18 < row["high"]
    assert row["called_different"].startswith("2 of 2")
    assert (table.loc[["A2", "A3", "A4"], "expected"] == 1).all()


@pytest.mark.parametrize("planted", [0.8, 0.4])
def test_the_share_of_work_is_that_of_the_copies(tmp_path, planted: float) -> None:
    treatments = [Planted({"service": "A1"}, 1.0, "", {"app": planted}),
                  Planted({"service": "+20%"}, 0.8, "", {"app": 1.0})]  # fmt: skip
    run = write_run(tmp_path, treatments=treatments, blocks=4, contrasts=[])
    assert work_share(run) == pytest.approx(WORK * planted / 0.8, abs=0.005)


def test_the_cost_of_measuring_stands_with_its_interval_and_n(tmp_path) -> None:
    table = overhead(lab_check(tmp_path)).set_index("who")
    for who, planted in (("load workers", 0.25), ("conductor and sampler", 0.04)):
        row = table.loc[who]
        assert row["low"] < row["typical"] < row["high"] < row["largest"]
        assert row["typical"] == pytest.approx(planted, abs=0.015)
        assert row["n"] == 60
    single = lab_check(tmp_path / "single", blocks=1, failed=[(0, index) for index in range(1, 5)])
    assert overhead(single)["low"].isna().all()


def test_refusals_are_counted_apart_for_the_overloaded_and_the_healthy(tmp_path) -> None:
    levels = ("A1", "overload", "stalled: open loop, 20 ms")
    treatments = tuple(Planted({"service": level}) for level in levels)
    run = write_run(
        tmp_path, treatments=treatments, blocks=4, contrasts=[],
        invalid=[*((block, 1) for block in range(3)), *((block, 2) for block in range(4))],
    )  # fmt: skip
    found = {kind: (rate.hits, rate.n) for kind, rate in refused(run).items()}
    assert found == {"overload": (3, 4), "stalled: open loop, 20 ms": (4, 4), "healthy": (0, 4)}
    assert "3 of 4" in refused_table(run)["refused"][0]


@pytest.mark.slow
def test_the_noise_of_a_trial_is_what_was_planted(tmp_path) -> None:
    run = lab_check(tmp_path, noise=0.05, blocks=40)
    noise, trials = trial_noise(run, "throughput_rps", [t.name for t in run.record.treatments])
    assert trials == 200
    assert noise == pytest.approx(0.05, rel=0.15)


def test_more_time_resolves_smaller_effects_as_its_square_root(tmp_path) -> None:
    found = resolving_power(lab_check(tmp_path), "mean_ms", (1, 10, 100))
    effects = list(found.effects.values())
    assert effects[0] > effects[1] > effects[2] > 0
    assert math.log1p(effects[1]) / math.log1p(effects[2]) == pytest.approx(math.sqrt(10), rel=0.1)
    assert "cannot be seen here below" in found.text()


def test_without_enough_trials_nothing_is_promised(tmp_path) -> None:
    run = lab_check(tmp_path, blocks=1)
    assert "Too few" in resolving_power(run).text()
    assert power_here(run).empty
    assert false_alarms(run).text() == "no case"


def test_a_run_without_answers_is_refused_in_words(tmp_path) -> None:
    run = lab_check(tmp_path, blocks=1, failed=[(0, index) for index in range(5)])
    with pytest.raises(AnalysisError, match="no successful request"):
        work_share(run)


def stubborn(run: Run, deviation: float, fresh_blocks: int) -> Run:
    """Give every copy a speed of its own for as long as its process lives."""
    random = np.random.default_rng(3)
    trials = run.trials()
    every = fresh_blocks or run.record.blocks
    lives = trials["treatment"] + (trials["block"] // every).astype(str)
    speeds = {life: math.exp(deviation * random.normal()) for life in lives.unique()}
    other = Run(run.path)
    other._trials = trials.assign(mean_ms=trials["mean_ms"] * lives.map(speeds))
    other.record = run.record.model_copy(
        update={"parameters": {**run.record.parameters, "fresh_blocks": fresh_blocks}}
    )
    return other


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Run:
    treatments = tuple(Planted({"service": f"A{place}"}, 1.0) for place in range(1, 9))
    return write_run(
        tmp_path_factory.mktemp("copies"), treatments=treatments, experiment="lab_check",
        contrasts=[], blocks=8, noise=0.02, requests=40,
    )  # fmt: skip


def test_processes_that_live_on_are_noise_that_no_block_averages_out(copies: Run) -> None:
    for fresh_blocks in (0, 4):
        run = stubborn(copies, 0.1, fresh_blocks)
        names = [item.name for item in run.record.treatments]
        assert process_noise(run, "mean_ms", names) == pytest.approx(0.1, rel=0.5)
    run = stubborn(copies, 0.1, 0)
    calm, kept = (
        resolving_power(copies, "mean_ms", (1, 1000)),
        resolving_power(run, "mean_ms", (1, 1000)),
    )
    assert calm.processes == 0
    assert calm.effects[1000] < 0.02
    assert kept.effects[1000] > 0.1
    assert "for as long as they live" in kept.text()
    # Started afresh, they are in the noise of trials.
    assert copies_noise(stubborn(copies, 0.1, 1)) == pytest.approx(0.1, rel=0.3)


def test_what_the_usual_blocks_find_of_planted_services_stands_with_its_interval(
    tmp_path: Path,
) -> None:
    (text,) = planted_found(lab_check(tmp_path), blocks=6)
    assert text == "+20%: 6 blocks called it different in 2 of 2: 100% [16%, 100%]"


def test_power_is_told_at_the_noise_of_the_run(copies: Run) -> None:
    table = power_here(copies, sets=20)
    assert list(table["true difference"]) == ["2%", "5%", "10%", "25%"]
    assert float(table["8 blocks"].iloc[-1].partition("%")[0]) >= 80
    assert table["noise of a trial"].iloc[0] == f"{copies_noise(copies):.1%}"
