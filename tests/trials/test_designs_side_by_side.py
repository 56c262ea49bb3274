"""The benchmark that sets blocks, slices and a duet side by side: equal time, real services."""

from __future__ import annotations

import importlib
from argparse import Namespace
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from perflab.paths import project_root

BEGAN_NS = 7_000_000_000


@pytest.fixture
def pairing(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(project_root() / "benchmarks")
    return importlib.import_module("pairing")


def test_all_designs_have_as_much_time_in_each_start(pairing: ModuleType) -> None:
    lengths_s = [pairing.rounds_of(each, 20.0, 50.0, 1).length_s for each in pairing.DESIGNS]
    assert max(lengths_s) - min(lengths_s) < 1.0


def test_all_starts_together_take_the_time_that_was_given(pairing: ModuleType) -> None:
    asked: dict[str, Any] = {"services": ["echo", "inference"], "repetitions": 3, "starts": 8}
    length_s = pairing.length_of_start_s(Namespace(minutes=240.0, **asked))
    starts = 3 * 8 * 6
    around_s = sum(pairing.AROUND_S[service] for service in asked["services"])
    assert starts * (2 * length_s + around_s) == pytest.approx(240 * 60)
    with pytest.raises(SystemExit, match="fewer --repetitions"):
        pairing.length_of_start_s(Namespace(minutes=50.0, **asked))


def row(design: str, case: str, **words: Any) -> dict[str, Any]:
    return {
        "service": "echo", "case": case, "design": design, "response": "throughput",
        "ratio": 1.0, "half": 0.04, "within": 0.01, "alarm": False, "minutes": 4.0,
        "carried over": 0.0, **words,
    }  # fmt: skip


def test_widths_are_set_to_the_same_time_and_alarms_counted_among_copies(
    pairing: ModuleType,
) -> None:
    rows = [
        row(design, case, **words)
        for design, words in (("blocks", {}), ("slices", {"half": 0.02, "minutes": 1.0}))
        for case in pairing.CASES
    ]
    rows[2]["alarm"] = rows[3]["alarm"] = True
    blocks, slices = pairing.summary(pd.DataFrame(rows)).to_dict("records")
    # Half as wide in a quarter of the time: a quarter as wide in the same.
    assert blocks["half width per minute"] == "8.00%"
    assert slices["of that of blocks"].startswith("0.25 ")
    assert (blocks["A/A alarms"], slices["A/A alarms"]) == ("0 of 1", "1 of 1")


@pytest.fixture
def opening_ns(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], int]:
    """Return when the fourth user may talk, asked at an instant; windows and load from 7 s on."""
    monkeypatch.syspath_prepend(project_root() / "benchmarks")
    words = {"codec": "json", "deflate": False, "spans": [(0.5, 0.8), (1.5, 1.8)]}
    talker = importlib.import_module("pairing_talkers").Talker(3, 1, words)
    talker._driver = SimpleNamespace(began_ns=BEGAN_NS)
    found: Callable[[int], int] = talker._opening_ns
    return found


@pytest.mark.parametrize(
    ("after_ms", "due_ns"),
    [(0, 503_000_000), (500, 500_000_000), (799, 799_000_000), (800, 1_503_000_000)],
    ids=["before the first", "at its begin", "just before its end", "in the gap after it"],
)
def test_who_talks_does_so_in_windows_alone(
    opening_ns: Callable[[int], int], after_ms: int, due_ns: int
) -> None:
    assert opening_ns(BEGAN_NS + after_ms * 1_000_000) == BEGAN_NS + due_ns


def test_who_talks_is_silent_after_the_last_window(opening_ns: Callable[[int], int]) -> None:
    assert opening_ns(BEGAN_NS + 1_800_000_000) > BEGAN_NS + 3_600 * 10**9


@pytest.mark.slow
@pytest.mark.measures
@pytest.mark.parametrize(
    ("service", "design"),
    [("echo", "blocks"), ("echo", "slices"), ("echo", "duet"), ("chat", "slices")],
)
def test_one_start_of_a_real_service_gives_a_ratio_for_every_round(
    pairing: ModuleType, service: str, design: str
) -> None:
    subject = pairing.SUBJECTS[service]()
    rounds = pairing.rounds_of(design, 6.0, subject.slice_ms, 1)
    with pairing.generators() as workers:
        found = pairing.measure(subject, "A/A", rounds, workers)
    # On a machine that others use a client may be late, or a round be left out: it then says so.
    assert set(found.ratios) == set(pairing.RESPONSES) or found.reasons
    for ratios in found.ratios.values():
        assert 1 <= len(ratios) <= rounds.rounds
        assert (abs(ratios) < 3).all()
