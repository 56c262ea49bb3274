"""Two runs: what may be compared, and what counts as a change for the worse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from perflab.analysis.treatments.two_runs import _rank_sum_counts, compare_runs, unpaired
from perflab.errors import AnalysisError
from perflab.recordings import Run
from tests.synthetic import ON_AND_OFF, Planted, write_run
from tests.systems.chat.synthetic_streams import write_stream_run


def runs(tmp_path, faster: float = 1.0, **changes) -> tuple[Run, Run]:
    a = write_run(tmp_path, seed=1, block_noise=0.02, blocks=8)
    planted = tuple(Planted(p.levels, p.ratio * faster, p.label) for p in ON_AND_OFF)
    b = write_run(
        tmp_path, seed=2, block_noise=0.02, blocks=8, **{"treatments": planted, **changes}
    )
    return a, b


def test_a_run_that_is_slower_is_worse_in_throughput_and_latency(tmp_path) -> None:
    found = compare_runs(*runs(tmp_path, 0.8))
    assert not found.obstacles
    assert set(found.table["verdict"]) == {"worse"}
    assert len(found.worse(1.1)) == len(found.table)
    assert found.worse(1.6).empty


def test_a_run_that_is_faster_fails_nothing(tmp_path) -> None:
    found = compare_runs(*runs(tmp_path, 1.25))
    assert set(found.table["verdict"]) == {"better"}
    assert found.worse(1.0).empty


def test_identical_runs_are_unclear(tmp_path) -> None:
    found = compare_runs(*runs(tmp_path))
    assert set(found.table["verdict"]) == {"unclear"}


def test_runs_of_different_experiments_backends_or_parameters_are_not_compared(tmp_path) -> None:
    a, _ = runs(tmp_path)
    other = write_run(tmp_path, seed=3, experiment="sync_vs_async")
    assert "'sync_vs_async'" in compare_runs(a, other).obstacles[0]
    b = write_run(tmp_path, seed=4)
    b.record = b.record.model_copy(update={"backend": "docker"})
    assert "docker" in compare_runs(a, b).obstacles[0]
    b.record = a.record.model_copy(update={"parameters": {**a.record.parameters, "driver": "x"}})
    assert "parameter driver" in compare_runs(a, b).obstacles[0]


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 4), (5, 2), (6, 6), (9, 11)])
def test_the_rank_sum_distribution_is_that_of_scipy(n: int, m: int) -> None:
    counts = _rank_sum_counts(n, m)
    assert counts.sum() == math.comb(n + m, n)
    x = np.arange(n) - 0.5
    exact = stats.mannwhitneyu(x, np.arange(n, n + m), method="exact", alternative="less").pvalue
    assert counts[0] / counts.sum() == pytest.approx(exact)


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 5), (4, 4), (6, 8), (12, 12)])
def test_unpaired_intervals_hold_the_truth_as_often_as_they_say(n: int, m: int) -> None:
    random = np.random.default_rng(n * 100 + m)
    held = 0
    for _ in range(1000):
        x, y = (
            np.exp(0.1 * random.standard_normal(n) + 0.2),
            np.exp(0.1 * random.standard_normal(m)),
        )
        _, low, high, _ = unpaired(x, y)
        held += low <= math.exp(0.2) <= high
    assert held / 1000 >= 0.935


def test_a_single_trial_has_no_interval_and_bad_values_are_refused() -> None:
    ratio, low, _, p = unpaired([2.0], [1.0])
    assert ratio == pytest.approx(2.0)
    assert math.isnan(low)
    assert math.isnan(p)
    assert unpaired([2.0, 2.0], [2.0, 2.0])[:3] == (1.0, 1.0, 1.0)
    for bad in ([], [math.nan], [0.0, 1.0], [math.inf]):
        with pytest.raises(AnalysisError):
            unpaired(bad, [1.0, 2.0])


def test_runs_of_streams_are_compared_by_their_deliveries(tmp_path) -> None:
    a, b = write_stream_run(tmp_path / "a"), write_stream_run(tmp_path / "b")
    found = compare_runs(a, b)
    assert {"messages_per_s", "delivery_p90_ms", "delivery_p95_ms"} <= set(found.table["response"])
    assert "p50_ms" not in set(found.table["response"])
    assert set(found.table["verdict"]) == {"unclear"}
