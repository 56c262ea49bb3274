"""The order of trials is random, balanced and of the seed alone; plans warn of what they cannot."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from perflab.errors import ParameterError
from perflab.load.workload import Scripted
from perflab.parameters import check, parse_assignments
from perflab.recordings import Contrast
from perflab.systems import experiment
from perflab.trials.designs import mirrored_orders
from perflab.trials.plan import RunPlan, Target, Treatment, obstacles, too_few_blocks
from perflab.trials.run_parameters import RunParameters
from perflab.trials.treatment_records import treatment_records
from tests.support.simulations.run_drift import block_alarms
from tests.trials.fakes import plan, treatment

NAMES = ("a", "b", "c", "d")


def of_four(seed: int, blocks: int = 6) -> RunPlan:
    return plan(blocks, seed=seed).model_copy(
        update={"treatments": tuple(treatment(name) for name in NAMES)}
    )


@given(seed=st.integers(0, 2**63), blocks=st.integers(1, 20))
@pytest.mark.promise
def test_every_block_holds_every_treatment_once_and_the_seed_decides_how(
    seed: int, blocks: int
) -> None:
    order = of_four(seed, blocks).order()
    assert len(order) == blocks
    assert all(sorted(block) == list(NAMES) for block in order)
    assert order == of_four(seed, blocks).order()
    assert order == of_four(seed, blocks + 3).order()[:blocks]


@given(seed=st.integers(0, 2**63), blocks=st.integers(1, 20))
def test_every_second_block_mirrors_the_one_before(seed: int, blocks: int) -> None:
    order = of_four(seed, blocks).order()
    for drawn, mirrored in zip(order[::2], order[1::2], strict=False):
        assert mirrored == drawn[::-1]


@pytest.mark.parametrize("shape", ["linear", "settling"])
@pytest.mark.parametrize(("treatments", "blocks"), [(2, 3), (2, 5), (3, 4), (5, 3)])
def test_a_drift_alone_makes_no_more_than_one_of_twenty_runs_certain(
    treatments: int, blocks: int, shape: str
) -> None:
    random = np.random.default_rng(treatments)
    few = (treatments, blocks, shape, 0.5, 0.01, 60)
    assert block_alarms(random, mirrored_orders, *few).hits <= 3


@pytest.mark.promise
def test_every_order_of_a_drawn_block_is_as_likely_as_any_other() -> None:
    blocks = [tuple(block) for seed in range(60) for block in of_four(seed, 80).order()[::2]]
    counts = Counter(blocks)
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > 0.001


@pytest.mark.parametrize(
    ("blocks", "claims", "words"),
    [
        (2, 1, "2 blocks can decide nothing: give 3 or more"),
        (3, 4, ""),
        (6, 1, ""),
        (6, 3, "6 blocks can show no single effect, however large it is; 7 blocks can"),
        (7, 3, ""),
    ],
)
def test_a_plan_that_can_decide_nothing_has_a_warning(blocks: int, claims: int, words: str) -> None:
    sides: dict[str, Any] = {"numerator": {"service": "a"}, "denominator": {"service": "b"}}
    contrast = Contrast(name="c", claim="c", response="mean_ms", **sides)
    warnings = too_few_blocks([contrast] * claims, blocks)
    assert len(warnings) == bool(words)
    assert all(words in warning.text for warning in warnings)
    assert not too_few_blocks([], blocks)


NAME = "synchronous_commit"


@pytest.mark.parametrize(
    ("typed", "rule", "blocks"),
    [
        (["blocks=until_decided"], (8, 20), 20),
        (["blocks=until_decided", "least_blocks=6", "most_blocks=30"], (6, 30), 30),
        (["blocks=12"], None, 12),
        ([], None, 8),
    ],
)
def test_a_plan_has_the_blocks_and_the_rule_that_were_typed(
    typed: list[str], rule: tuple[int, int] | None, blocks: int
) -> None:
    chosen = experiment(NAME)
    plan = chosen.plan(chosen.check(parse_assignments(typed)))
    assert plan.blocks == len(plan.order()) == blocks
    planned_rule = plan.until_decided
    assert (planned_rule and (planned_rule.least_blocks, planned_rule.most_blocks)) == rule
    looks = tuple(look.blocks for look in planned_rule.plan) if planned_rule else ()
    assert looks[:1] + looks[-1:] == (rule or ())
    again = chosen.plan(chosen.check(plan.parameters))
    assert (again.until_decided, again.order()) == (planned_rule, plan.order())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"blocks": "untl_decided"}, "blocks = 'untl_decided': give a number of blocks, or until"),
        ({"most_blocks": 30}, "most_blocks: only with blocks = until_decided; blocks is 8"),
        ({"blocks": "until_decided", "least_blocks": 21}, "least_blocks = 21 is above most_blocks"),
        ({"blocks": "until_decided", "most_blocks": 5}, "must be 6 or more"),
    ],
)
def test_wrong_values_are_refused_with_the_way_out(values: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError) as caught:
        check(RunParameters, values, "experiment 'x'")
    assert words in str(caught.value)
    assert len(caught.value.problems) == 1


def test_where_nothing_can_be_decided_the_error_asks_for_a_number() -> None:
    chosen = experiment("client_overhead")
    checked = chosen.check({"blocks": "until_decided", "client": ["lean"]})
    with pytest.raises(ParameterError, match="there is no claim that could be decided"):
        chosen.plan(checked)


def aimed(url: str, *allowed: str) -> Treatment:
    """Return a treatment whose load goes to a service that the lab did not start."""
    target = Target(url=url, is_here=True, allowed=allowed)
    return treatment("a").model_copy(update={"target": target})


def test_a_host_that_nobody_named_is_refused_before_anything_starts() -> None:
    def problems(target: Treatment) -> list[str]:
        found = obstacles(plan().model_copy(update={"treatments": (target,)}))
        return [problem for problem in found if "target" in problem]

    (problem,) = problems(aimed("http://service.test:80"))
    assert "'service.test' is not a target of this run" in problem
    assert problems(aimed("http://service.test", "service.test")) == []
    assert problems(aimed("http://127.0.0.1:8000")) == []


def test_a_script_that_cannot_be_loaded_is_refused_before_anything_starts(tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text("import picows_of_tomorrow\n")
    users = Scripted(script=f"{script}:Shopper", users=1, duration_s=1)
    of_users = treatment("a").workload.model_copy(update={"arrivals": users})
    changed = treatment("a").model_copy(update={"workload": of_users})
    problems = obstacles(plan(2).model_copy(update={"treatments": (changed,)}))
    assert any("No module named 'picows_of_tomorrow'" in problem for problem in problems)


def test_a_target_is_recorded_and_treatments_without_one_are_as_they_were() -> None:
    (with_one, without), _ = treatment_records([aimed("http://127.0.0.1:8000"), treatment("a")])
    assert "target" in with_one.parts
    assert "target" not in without.parts


@pytest.mark.parametrize(
    ("fresh", "words"),
    [
        (1, ""),
        (4, "8 blocks with fresh_blocks = 4 count as 2: 2 blocks can decide nothing"),
        (2, ""),
        (8, ""),
    ],
)
def test_blocks_that_share_a_start_count_once_in_the_warning(fresh: int, words: str) -> None:
    sides: dict[str, Any] = {"numerator": {"service": "a"}, "denominator": {"service": "b"}}
    one = Contrast(name="c", claim="c", response="mean_ms", source="s", **sides)
    assert "".join(map(str, too_few_blocks([one], 8, fresh))).startswith(words)
    assert bool(too_few_blocks([one], 8, fresh)) == bool(words)


def test_blocks_that_are_added_until_all_is_decided_need_a_start_each() -> None:
    named = experiment("client_overhead")
    with pytest.raises(ParameterError, match=r"every block needs a start of its own \(fresh_block"):
        named.check({"blocks": "until_decided", "fresh_blocks": 2})
    named.check({"blocks": "until_decided", "fresh_blocks": 0})
