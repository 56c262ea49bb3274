"""Times that hold some of the client's own are compared with and without it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from perflab.analysis.evaluation import evaluate
from perflab.analysis.findings import sentence
from perflab.analysis.typical_values import typical_values
from perflab.recordings import Run
from perflab.recordings.responses import at_most_column, client_column, lower_end_column
from tests.support.planted_trial import Planted
from tests.support.simulations.client_time import (
    ALIKE,
    BY_SIDE,
    BY_TRIAL,
    CONTRAST,
    RESPONSE,
    SIDES,
    ClientTime,
    effects_of,
    held,
    trials_of,
)
from tests.support.synthetic import write_run

SETS, BLOCKS = 60, 8


@pytest.mark.parametrize(
    "client",
    [
        ClientTime(0.05, one_sided=True), ClientTime(0.09, BY_TRIAL), ClientTime(0.30, BY_TRIAL),
        ClientTime(0.30, BY_SIDE), ClientTime(0.30, one_sided=True),
    ],
)  # fmt: skip
def test_intervals_of_times_with_the_clients_part_hold_the_truth(client: ClientTime) -> None:
    holds = held(np.random.default_rng(5), SETS, BLOCKS, client, 1.3)
    assert holds.within.hits / SETS >= 0.87
    if client.one_sided or (client.share > 0.1 and client.counts != BY_TRIAL):
        assert holds.measured.hits / SETS < 0.85


def test_a_small_part_that_is_alike_on_both_sides_hides_no_difference() -> None:
    holds = held(np.random.default_rng(5), SETS, BLOCKS, ClientTime(0.09, ALIKE), 1.1)
    assert holds.shown.hits / SETS >= 0.95


@pytest.mark.parametrize(("end", "share"), [(at_most_column, 0.02), (lower_end_column, -0.02)])
@pytest.mark.promise
def test_what_pauses_may_hide_of_one_side_is_in_the_interval(
    end: Callable[[str], str], share: float
) -> None:
    """One side's values are 2% from one of their ends, and 4% from the other at most."""
    random, within, measured = np.random.default_rng(7), 0, 0
    for _ in range(SETS):
        trials = trials_of(random, BLOCKS, ClientTime(0.0), 1.0, 0.01)
        is_paused = trials["treatment"] == SIDES[0].name
        true = trials[RESPONSE]
        trials[RESPONSE] = true.where(~is_paused, true / (1 + share))
        trials[end(RESPONSE)] = ((1 + 2 * share) * trials[RESPONSE]).where(is_paused)
        effect, of_measured = effects_of(trials)
        within += effect.low <= 1.0 <= effect.high
        measured += of_measured.low <= 1.0 <= of_measured.high
    assert within / SETS >= 0.9
    assert measured / SETS < 0.5


def with_client(root: Path, client: float, response: str = RESPONSE) -> Run:
    """Return a run of 8 blocks whose times are 50 ms or longer, with a part of the client."""
    sides = tuple(
        Planted(side.levels, ratio, side.label) for side, ratio in zip(SIDES, (0.7, 1), strict=True)
    )
    contrast = CONTRAST.model_copy(update={"response": response})
    run = write_run(root, treatments=sides, blocks=BLOCKS, requests=60, contrasts=[contrast])
    trials = run.trials().assign(**{client_column(response): client})
    run.trials = lambda: trials  # type: ignore[method-assign]
    return run


@pytest.mark.parametrize(("response", "part"), [(RESPONSE, 30.0), ("throughput_rps", -300.0)])
def test_a_part_above_a_tenth_widens_the_interval_and_the_narrower_one_is_told(
    tmp_path: Path, response: str, part: float
) -> None:
    (plain,), (wide,) = (
        evaluate(with_client(tmp_path / str(client), client, response)) for client in (0.0, part)
    )
    assert plain.effect is not None
    assert wide.effect is not None
    assert wide.effect.estimate == plain.effect.estimate
    assert wide.effect.low < plain.effect.low
    assert plain.effect.high < wide.effect.high
    alike = wide.if_alike
    assert alike is not None
    assert wide.effect.low < alike.low < alike.high < wide.effect.high
    told = "if the client added as much to the times of both sides"
    assert told in sentence(wide)
    assert told not in sentence(plain)


@pytest.mark.parametrize(
    ("client", "below", "above"), [(1.0, 0.0, 0.0), (30.0, 30.0, 0.0), (-30.0, 0.0, 30.0)]
)
def test_the_typical_value_has_an_interval_that_holds_it_without_the_client(
    tmp_path: Path, client: float, below: float, above: float
) -> None:
    run = with_client(tmp_path, client)
    values = typical_values(run.valid_trials(), [RESPONSE])
    plain = typical_values(run.valid_trials().drop(columns=client_column(RESPONSE)), [RESPONSE])
    assert values[f"{RESPONSE}_low"] == pytest.approx(plain[f"{RESPONSE}_low"] - below)
    assert values[f"{RESPONSE}_high"] == pytest.approx(plain[f"{RESPONSE}_high"] + above)


@pytest.mark.promise
def test_a_time_that_may_be_all_the_clients_keeps_a_lower_end_above_0(tmp_path: Path) -> None:
    run = with_client(tmp_path, 500.0)
    (finding,) = evaluate(run)
    values = typical_values(run.valid_trials(), [RESPONSE])
    assert 0 < values[f"{RESPONSE}_low"] < values[RESPONSE] / 10
    assert finding.effect is not None
    assert 0 < finding.effect.low < finding.effect.high < math.inf
