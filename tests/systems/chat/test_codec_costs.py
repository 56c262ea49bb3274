"""The loop count that published totals imply, on planted times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from perflab.recordings import Run
from perflab.systems.chat.codec_costs import (
    RESPONSE,
    implied_loops,
    loops_sentence,
    loops_together,
)
from perflab.trials.plan import Treatment
from tests.systems.planned import write_planned

PUBLISHED_MS = {
    ("json", "serialize"): 3588, ("json", "deserialize"): 2630, ("orjson", "serialize"): 407,
    ("orjson", "deserialize"): 645, ("protobuf", "serialize"): 403,
    ("protobuf", "deserialize"): 344,
}  # fmt: skip


def run_with_times(root: Path, loops: float, blocks: int = 6, noise: float = 0.05) -> Run:
    """Write a run in which the published totals stand for about ``loops`` operations."""
    rng = np.random.default_rng(4)

    def plant(treatment: Treatment, *_: int) -> tuple[dict[str, float], None, dict[str, object]]:
        total_ms = PUBLISHED_MS[treatment.levels["codec"], treatment.levels["operation"]]
        return {RESPONSE: total_ms * 1e3 / loops * np.exp(rng.normal(0, noise))}, None, {}

    codecs, steps = (list(dict.fromkeys(names)) for names in zip(*PUBLISHED_MS, strict=True))
    wanted = {"codec": codecs, "operation": steps, "message": ["published"], "blocks": blocks}
    return write_planned(root, "serialization", plant, **wanted)


def test_the_implied_loop_count_is_found_with_an_interval_that_holds_it(tmp_path: Path) -> None:
    run = run_with_times(tmp_path, 2e6)
    table = implied_loops(run)
    assert len(table) == 6
    assert table["n"].tolist() == [6] * 6
    assert table["loops"].to_numpy() == pytest.approx(2e6, rel=0.1)
    together = loops_together(run)
    assert together is not None
    assert together.low <= together.value <= together.high
    # The common count has six times as many values, so its interval is narrower.
    assert together.high / together.low < (table["high"] / table["low"]).median()
    first = table.iloc[0]
    assert first["us"] == pytest.approx(3588e3 / 2e6, rel=0.1)


def test_the_sentence_compares_the_count_with_the_stated_one(tmp_path: Path) -> None:
    words = loops_sentence(run_with_times(tmp_path, 2e6, noise=0.001))
    assert "(95% interval, 6 blocks; single codecs and steps from" in words
    assert words.endswith(
        "The study states 10,000,000: for those, its machine would have to be 5 times as fast as "
        "this one."
    )
    assert "(no interval)" in loops_sentence(run_with_times(tmp_path / "one", 2e6, blocks=1))
