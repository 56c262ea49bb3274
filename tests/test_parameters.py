"""Parameters are checked before anything starts, and every problem is told at once."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perflab.errors import ParameterError
from perflab.experiments import experiment, names
from perflab.notebook import assigned_names
from perflab.parameters import from_text, parse_assignments


@pytest.mark.parametrize("name", names())
def test_defaults_of_every_experiment_are_valid(name: str) -> None:
    plan = experiment(name).plan(experiment(name).check({"seed": 1}))
    assert plan.contrasts
    assert len({item.name for item in plan.treatments}) == len(plan.treatments)


def test_all_problems_are_listed_at_once_with_the_nearest_name() -> None:
    with pytest.raises(ParameterError) as caught:
        experiment("synchronous_commit").check({"blokcs": 3, "workers": 100, "requests": "many"})
    assert len(caught.value.problems) == 3
    assert "did you mean 'blocks'" in str(caught.value)
    assert "workers = 100" in str(caught.value)


def test_impossible_combination_names_both_parameters() -> None:
    with pytest.raises(ParameterError, match=r"pool_size = 2 .* workers = 4"):
        experiment("synchronous_commit").check({"pool_size": 2})


def test_unknown_experiment_proposes_the_nearest() -> None:
    with pytest.raises(ParameterError, match="did you mean 'synchronous_commit'"):
        experiment("synchronous_comit")


def test_checking_takes_less_than_half_a_second() -> None:
    chosen = experiment("sync_vs_async")
    begin = time.perf_counter()
    chosen.plan(chosen.check({"round_trip_ms": "0,1,5"}))
    assert time.perf_counter() - begin < 0.5


def test_published_preset_yields_to_what_is_given() -> None:
    checked = experiment("inference_runtime").check({"preset": "published", "concurrency": 10})
    assert checked.requests == 1000
    assert checked.concurrency == 10


@pytest.mark.parametrize("text", ["0,5", "[0, 5]", [0, 5], (0.0, 5.0)])
def test_list_parameters_may_be_typed_in_several_ways(text: object) -> None:
    assert experiment("sync_vs_async").check({"round_trip_ms": text}).round_trip_ms == (0.0, 5.0)


def test_assignments_without_a_value_are_refused() -> None:
    with pytest.raises(ParameterError, match="not of the form key=value"):
        parse_assignments(["blocks"])


@given(st.text())
def test_any_text_can_be_read_as_a_value(text: str) -> None:
    from_text(text)


@given(st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_survive_being_typed(value: float) -> None:
    assert from_text(str(value)) == value


def test_names_that_papermill_injected_are_found() -> None:
    cells = ["x = 1", "# Parameters\nblocks = 2\nblokcs = 3\n"]
    assert assigned_names(cells) == ["blocks", "blokcs"]
