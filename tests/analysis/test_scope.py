"""A finding says how far it holds: for the load as asked for, or also at the load's end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.findings import sentence
from perflab.analysis.scope import ALSO_AT_THE_END, THIS_LOAD_ONLY
from tests.support.simulations.drift import Drift, held
from tests.support.synthetic import write_run

SETS = 300


@pytest.mark.parametrize("drift", [Drift(), Drift(0.2), Drift(0.2, settles=True)])
@pytest.mark.parametrize("blocks", [3, 8])
@pytest.mark.promise
def test_intervals_hold_the_loads_ratio_and_extended_ones_that_of_its_end(
    blocks: int, drift: Drift
) -> None:
    holds = held(np.random.default_rng(4), SETS, blocks, drift)
    # Three standard errors of so few sets below 95%.
    assert holds.load.hits / SETS > 0.91
    assert holds.end.hits / SETS > 0.95


def finding_of(root: Path, drifts: list[list[float]], **words: Any) -> Finding:
    """Return the finding of a run whose second side gives 1.6 times the throughput."""
    run = write_run(root, requests=40, drifts=dict(enumerate(drifts)), **words)
    (finding,) = evaluate(run)
    return finding


# The shown ratio of 1.6 would be gone after a fall by half.
AWAY = [-0.7, -0.6, -0.8, -0.65, -0.75, -0.7]


@pytest.mark.parametrize(
    ("drifts", "scope"),
    [
        ([[0.0] * 6, [0.01, -0.01, 0.02, -0.02, 0.01, -0.01]], ALSO_AT_THE_END),
        ([AWAY, AWAY], ALSO_AT_THE_END),
        ([[0.0] * 6, AWAY], f"{THIS_LOAD_ONLY}; the ratio moved by -50% [-55%, -45%]"),
        ([[0.0] * 6, [-1.0, 1.1, -0.9, 1.0, -1.1, 0.9]], ""),
        ([[0.0] * 6, [float("nan"), *AWAY[1:]]], ""),
    ],
)
def test_the_scope_follows_from_the_drift_of_the_ratio_alone(
    tmp_path: Path, drifts: list[list[float]], scope: str
) -> None:
    finding = finding_of(tmp_path / "a", drifts)
    (without,) = evaluate(write_run(tmp_path / "b", requests=40))
    assert finding.scope == scope
    assert not without.scope
    # Drift removes no trial, and changes neither the effect nor the verdict.
    assert (finding.valid, finding.effect, finding.verdict) == (
        without.valid,
        without.effect,
        without.verdict,
    )
    assert scope in sentence(finding)
