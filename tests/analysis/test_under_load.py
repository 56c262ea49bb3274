"""What of a difference comes only under load, by planted accounts of four blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.accounts.entries import Entry
from perflab.analysis.accounts.under_load import only_under_load

# Of requests that come one at a time, both sides take 2 ms.
ALONE = Entry(2.0, 2.0, 0.0, -0.1, 0.1, 0.9)
CORE, POOL = ("wait", "a core"), ("metric", "pool_wait_seconds")
OLD = {("response", ""): 4.0, ("cpu", ""): 0.5, CORE: 0.1, POOL: 0.0}
NEW = {**OLD, ("response", ""): 14.0}
WITHOUT_POOL = {key: time_ms for key, time_ms in OLD.items() if key != POOL}


def rows(side: str, times: Mapping[tuple[str, str], float]) -> list[dict[str, object]]:
    rng = np.random.default_rng(len(side))
    return [
        {"treatment": side, "block": block, "kind": kind, "entry": entry, "count": float("nan"),
         "time_ms": time_ms * float(np.exp(rng.normal(0, 0.01)))}
        for block in range(4)
        for (kind, entry), time_ms in times.items()
    ]  # fmt: skip


def told(
    new: Mapping[tuple[str, str], float] = NEW,
    functions: Mapping[str, tuple[float, float]] | None = None,
    throughput_rps: float = 100.0,
    of_old: Mapping[tuple[str, str], float] = OLD,
) -> str:
    accounts = pd.DataFrame([*rows("old", of_old), *rows("news", new)])
    of_functions = [
        {"treatment": side, "block": block, "function": name, "time_ms": times[place]}
        for block in range(4)
        for name, times in (functions or {}).items()
        for place, side in enumerate(("old", "news"))
    ]
    throughputs = dict.fromkeys(("old", "news"), throughput_rps)
    return only_under_load(accounts, pd.DataFrame(of_functions), throughputs, "news", "old", ALONE)


GUARDED = {"guarded (work.py)": (1.0, 10.5), "answer (app.py)": (0.2, 0.9)}


@pytest.mark.parametrize(
    ("sentence", "ends"),
    [
        (told(), "for something in the service that one request uses at a time: a lock, a pool, "
                 "a thread"),
        (told(functions=GUARDED), "in guarded (work.py), for what one request uses at a time: a "
                                  "lock, a pool"),
        # A function that holds too little of the difference is not named.
        (told(functions={"answer (app.py)": (0.2, 4.0)}), "a lock, a pool, a thread"),
        # What the kernel or the service counts is known better, and so is a core that is full.
        (told({**NEW, CORE: 9.0}, GUARDED), "for a core"),
        (told({**NEW, POOL: 9.0}, GUARDED), "for pool_wait_seconds, as the service counts it"),
        (told({**NEW, ("cpu", ""): 9.5}, GUARDED),
         "for the service itself, which uses 95% of a core"),
    ],
)  # fmt: skip
def test_what_requests_wait_for_under_load_is_named(sentence: str, ends: str) -> None:
    assert "ms come only under the load: requests wait " in sentence
    assert sentence.endswith(ends), sentence


def test_a_full_core_of_the_old_side_is_what_its_requests_waited_for() -> None:
    accounts = pd.DataFrame([*rows("old", {**NEW, ("cpu", ""): 9.5}), *rows("news", OLD)])
    throughputs = {"old": 100.0, "news": 100.0}
    sentence = only_under_load(accounts, pd.DataFrame(), throughputs, "news", "old", ALONE)
    assert sentence.endswith("for the service itself, which uses 95% of a core"), sentence


def test_no_more_comes_under_the_load_than_the_whole_difference() -> None:
    # Alone the new side is 0.5 ms faster.
    accounts = pd.DataFrame([*rows("old", OLD), *rows("news", NEW)])
    alone = Entry(2.0, 1.5, -0.5, -0.6, -0.4, 0.01)
    sentence = only_under_load(
        accounts, pd.DataFrame(), {"old": 100.0, "news": 100.0}, "news", "old", alone
    )
    part, whole = re.findall(r"[\d.]+", sentence)[:2]
    assert float(part) <= float(whole)


def test_a_metric_that_one_side_alone_has_names_nothing() -> None:
    assert told({**NEW, POOL: 9.0}, GUARDED, of_old=WITHOUT_POOL).endswith("a lock, a pool")


def test_what_comes_without_the_load_too_is_none_of_it() -> None:
    accounts = pd.DataFrame([*rows("old", OLD), *rows("news", NEW)])
    alone = Entry(2.0, 11.0, 9.0, 8.0, 10.0, 0.001)
    assert (
        only_under_load(
            accounts, pd.DataFrame(), {"old": 100.0, "news": 100.0}, "news", "old", alone
        )
        == ""
    )
