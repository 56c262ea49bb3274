"""A service whose trials become faster while they are measured is told, and noise is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.doubts.still_warming import UNFINISHED, still_warming
from perflab.recordings import Remark

REQUESTS = 300


def duel(falls_by: float, blocks: int = 8, *remarks: Remark) -> Any:
    """Return a run whose new side falls evenly by a share in each trial; trials differ by 10%."""
    random = np.random.default_rng(1)
    parts = []
    for block in range(blocks):
        for name, share in (("old", 0.0), ("new", falls_by)):
            level = np.exp(random.normal(0, 0.1)) * 1e6
            times = level * (1 - share * np.linspace(0, 1, REQUESTS))
            planned = np.arange(REQUESTS) * 10_000_000
            parts.append(
                pd.DataFrame(
                    {
                        "trial_id": f"{block}-{name}", "treatment": name, "planned_ns": planned,
                        "done_ns": planned + times * random.uniform(0.8, 1.2, REQUESTS),
                        "error": "",
                    }
                )
            )  # fmt: skip
    table = pd.concat(parts, ignore_index=True)
    treatments = [SimpleNamespace(name=name, levels={"variant": name}) for name in ("old", "new")]
    record = SimpleNamespace(treatments=treatments, warnings=list(remarks))
    return SimpleNamespace(requests=lambda: table, record=record)


@pytest.mark.parametrize("blocks", [8, 5, 3])
def test_a_side_that_certainly_becomes_faster_within_its_trials_is_named_with_its_share(
    blocks: int,
) -> None:
    # From the middle of the first third to that of the last it falls from 1 - 0.06 to 1 - 0.3.
    (sentence,) = still_warming(duel(0.36, blocks))
    assert sentence.startswith("new is still warming up: 2")
    assert sentence.endswith("% faster at the end of its trials than at the beginning")


@pytest.mark.parametrize(
    ("falls_by", "blocks"),
    [(0.0, 8), (0.03, 8), (-0.5, 8), (0.0, 3), (0.1, 5), (-0.5, 5), (0.36, 2)],
)
def test_small_falls_rises_and_two_blocks_are_not_told(falls_by: float, blocks: int) -> None:
    assert still_warming(duel(falls_by, blocks)) == []


def test_what_was_noted_while_the_warm_up_was_found_stands_in_its_place() -> None:
    noted = Remark(code=UNFINISHED, text="new was still warming up after 20 s of load")
    assert still_warming(duel(0.0, 8, noted)) == [noted.text]
    assert "faster at the end" in still_warming(duel(0.36, 8, noted))[0]
