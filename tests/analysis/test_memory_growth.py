"""Memory that grows with requests is compared so that no side loses by serving more of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.doubts.memory_growth import GROWS_IDLE
from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.gates.thresholds import thresholds_of
from perflab.analysis.results import Compared, Gate
from perflab.recordings import Remark, Response
from tests.support.planted_trial import Planted
from tests.support.synthetic import UNPUBLISHED, contrast_of, write_run

OLD, NEW = (Planted({"variant": name}) for name in ("old", "new"))
MEMORY = "service_memory_bytes"
MB, KB = 1e6, 1e3
NOISE = np.array([-0.002, -0.001, 0.0, 0.001, 0.002, 0.0005, -0.0005, 0.0015])


@dataclass(frozen=True)
class Grown:
    """A side: its memory without requests, its growth with each of them, and their number."""

    base_mb: float
    growth_kb: float = 0.0
    requests: int = 5_000
    # What it fills once, at its first requests.
    filled_mb: float = 0.0

    @property
    def held(self) -> float:
        return (self.base_mb + self.filled_mb) * MB + self.growth_kb * KB * self.requests


def compared(tmp_path: Path, old: Grown, new: Grown, *remarks: Remark) -> Finding:
    contrast = contrast_of(NEW, OLD, response=MEMORY, **UNPUBLISHED)
    run = write_run(tmp_path, treatments=(OLD, NEW), contrasts=[contrast], requests=40, blocks=8)
    trials, sides = run.trials(), {OLD.name: old, NEW.name: new}
    noise = 1 + trials["block"].map(pd.Series(NOISE)) * (trials["treatment"] == NEW.name)
    of = trials["treatment"].map(sides)
    trials[MEMORY] = of.map(lambda side: side.held) * noise
    trials["service_memory_growth_bytes"] = of.map(lambda side: side.growth_kb * KB) * noise
    trials["service_memory_requests"] = of.map(lambda side: side.requests)
    run._trials = trials
    declared = Response(name=MEMORY, title="memory", unit="bytes", better="less")
    update = {"responses": [declared], "warnings": [*remarks]}
    run.record = run.record.model_copy(update=update)
    (finding,) = evaluate(run)
    return finding


@pytest.mark.parametrize("growth_kb", [0.1, 1.0, 10.0])
@pytest.mark.promise
def test_a_version_that_serves_twice_as_much_does_not_use_more_memory_for_it(
    tmp_path: Path, growth_kb: float
) -> None:
    finding = compared(tmp_path, Grown(30, growth_kb), Grown(30, growth_kb, requests=10_000))
    assert finding.verdict.result is Compared.SAME


def test_memory_that_is_filled_once_is_compared_as_it_was_read(tmp_path: Path) -> None:
    finding = compared(tmp_path, Grown(30, filled_mb=20), Grown(33, filled_mb=22, requests=10_000))
    assert finding.effect is not None
    assert finding.effect.estimate == pytest.approx(1.1, rel=0.01)
    assert (finding.verdict.result, finding.growth) == (Compared.WORSE, "")


def test_a_leak_in_one_version_is_worse_by_what_is_seen_at_least(tmp_path: Path) -> None:
    finding = compared(tmp_path, Grown(30), Grown(30, 3.0))
    assert finding.effect is not None
    assert finding.effect.bound == "at least"
    assert finding.effect.low == pytest.approx(1.5, rel=0.01)
    (limit,) = thresholds_of(["memory>1.1"])
    assert limit.judged(finding) is Gate.FAILED
    assert "by 0 KB a request (old) and 3.0" in finding.growth
    mended = compared(tmp_path / "mended", Grown(30, 3.0), Grown(30))
    assert mended.verdict.result is Compared.BETTER


def test_a_ratio_that_depends_on_the_length_of_the_load_decides_only_what_does_not(
    tmp_path: Path,
) -> None:
    # After these loads 1.22, after longer ones up to 2.
    twice = compared(tmp_path, Grown(35, 2.0), Grown(35, 4.0))
    assert twice.effect is not None
    assert twice.effect.low == pytest.approx(1.22, rel=0.01)
    assert twice.effect.high == pytest.approx(2.0, rel=0.01)
    assert twice.verdict.result is Compared.WORSE
    # Three times the memory at first, and the same growth: in the end as much.
    base = compared(tmp_path / "base", Grown(10, 4.0), Grown(30, 4.0))
    assert base.effect is not None
    assert base.effect.low < 1.01 < 1.6 < base.effect.high
    assert base.verdict.result is Compared.NOT_DECIDED
    assert "depends on the length of the load" in base.growth


@pytest.mark.promise
def test_memory_that_grows_by_the_clock_is_not_better_for_having_served_more(
    tmp_path: Path,
) -> None:
    old, new = Grown(12, growth_kb=10, requests=1_000), Grown(12, growth_kb=5, requests=3_000)
    assert compared(tmp_path / "by requests", old, new).verdict.result is Compared.BETTER
    remark = Remark(code=GROWS_IDLE, text="the memory of new grows while nobody asks")
    assert (
        compared(tmp_path / "by the clock", old, new, remark).verdict.result is Compared.NOT_DECIDED
    )
