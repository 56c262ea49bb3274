"""The page about stopping: what is simulated is what a run does, and the page is the script's."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.methods.comparison import effect_of
from perflab.analysis.treatments.open_claims import OPEN
from perflab.analysis.treatments.verdict import judge
from perflab.paths import project_root


def loaded(name: str) -> ModuleType:
    place = project_root() / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look for their module by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def table() -> ModuleType:
    return loaded("stopping_table")


@pytest.mark.parametrize(
    "kind",
    ["calm", "drift", "outliers", "heavy tails", "noise that grows tenfold",
     "steps far above the noise"],
)  # fmt: skip
def test_equal_treatments_differ_in_one_of_twenty_runs_at_most_however_often_they_are_looked_at(
    table: ModuleType, kind: str
) -> None:
    every, at_looks, found = table.errors(np.random.default_rng(4), kind, 3000)
    # Three standard errors of so many runs.
    assert found <= 0.05 + 3 * (0.05 * 0.95 / 3000) ** 0.5
    assert every > at_looks >= 0.07, "the usual test, looked at more often"


def test_decisions_that_are_worked_out_at_once_are_those_of_a_run(table: ModuleType) -> None:
    logs = table.simulated(np.random.default_rng(5), 1.4, 0.08, 30)
    place = table.Place(logs)
    rules = [table.RULE, table.every_look(table.MOST), None]
    for rule in rules:
        lowest = {}
        for error in (0.05, 0.10):
            for n, own in zip(
                table.looks_of(rule or table.RULE), _sums(table, rule, error), strict=True
            ):
                lowest.setdefault(n, []).append(own)
        for n, sums in lowest.items():
            wanted = [
                judge(effect_of(pd.Series(x[:n]), rule=rule), table.claim()).outcome not in OPEN
                for x in logs
            ]
            assert place.decided(n, *sums).tolist() == wanted


def _sums(table: ModuleType, rule: object, error: float) -> list[int]:
    if rule is not None:
        return list(table.lowest_sums(rule, error))
    return [table.signed_rank.critical(n, error / 2)[0] + 1 for n in table.looks_of(table.RULE)]


def test_a_clear_effect_ends_a_run_early_and_a_doubtful_one_later(table: ModuleType) -> None:
    random = np.random.default_rng(6)
    clear = table.by_rule(table.Place(table.simulated(random, 1.6, 0.05, 40)), table.RULE)
    doubtful = table.by_rule(table.Place(table.simulated(random, 1.4, 0.08, 40)), table.RULE)
    assert clear.decided == 1
    assert clear.blocks < 9
    assert doubtful.blocks > clear.blocks + 2


def test_the_page_is_the_one_that_the_script_writes(table: ModuleType) -> None:
    """All but the simulated numbers: the words, the exact levels, and the kinds of rows."""
    page, frame = table.PAGE.read_text(), table.FRAME.read_text()
    for words in frame.split("\n\n"):
        if "{" not in words:
            assert words.strip() in page
    assert table.level_table() in page
    for kind in table.KINDS:
        assert f"| {kind} |" in page
    for plan in table.PLANS:
        assert f"| {plan} |" in page
