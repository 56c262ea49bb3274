"""The benchmark that counts what duels by each design find: its table, of planted outcomes."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pandas as pd
import pytest

from perflab.paths import project_root


@pytest.fixture
def duel(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(project_root() / "benchmarks")
    return importlib.import_module("duel")


def row(design: str, kind: str, said: str, ratio: float, half: float = 0.02) -> dict[str, Any]:
    return {
        "design": design, "kind": kind, "response": "mean_ms", "said": said,
        "log": math.log(ratio), "half": half, "took_s": 30.0,
    }  # fmt: skip


def test_a_false_alarm_and_a_miss_are_counted_with_their_design(duel: Any) -> None:
    rows = [
        row("slices", "planted", "different", 1.04),
        row("slices", "planted", "equivalent", 1.02),
        row("slices", "A/A", "different", 1.03),
        row("trials", "planted", "undecided", 1.05, half=0.08),
        row("trials", "A/A", "equivalent", 1.00),
    ]
    slices, trials = duel.summary(pd.DataFrame(rows)).to_dict("records")
    assert (slices["design"], trials["design"]) == ("slices", "trials")
    counted = {name: text.partition(":")[0] for name, text in slices.items()}
    assert counted["planted different"] == counted["planted same"] == "1 of 2"
    assert (counted["A/A different"], counted["A/A same"]) == ("1 of 1", "0 of 1")
    assert trials["planted different"].startswith("0 of 1: ")
    assert slices["planted ratio"] == "1.030 (1.020 to 1.040)"
    # A geometric mean: 2% and 8% are 4%.
    assert (slices["half width"], trials["half width"]) == ("2.0%", "4.0%")


def test_seconds_of_a_trial_are_given_by_design(duel: Any) -> None:
    assert duel._designs(["trials=1.2", "slices"]) == {"trials": 1.2, "slices": 0.7}
