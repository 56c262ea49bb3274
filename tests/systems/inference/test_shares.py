"""Claims about shares of time: measured per block, judged by a rule fixed beforehand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.recordings import Run
from perflab.systems.inference.analysis.time_shares import (
    Judgement,
    Share,
    Size,
    has_all_commits,
    judged,
    judged_shares,
    shares,
)
from tests.synthetic import Planted, write_run

HALF = Share("c", "claim", "what", 0.5, published=0.53)


def commits(off: float = 1.6, none: float = 3.4) -> tuple[Planted, ...]:
    """Return on, off and no write, with their throughput as multiples of the first."""
    return (
        Planted({"database_write": "yes", "synchronous_commit": "on"}, 1.0),
        Planted({"database_write": "yes", "synchronous_commit": "off"}, off),
        Planted({"database_write": "no", "synchronous_commit": "none"}, none),
    )


def write(folder: Path, **ratios: float) -> Run:
    return write_run(
        folder, treatments=commits(**ratios), requests=60, blocks=8, noise=0.01, contrasts=[]
    )


def around(middle: float, half_width: float, n: int = 8) -> pd.Series:
    return pd.Series(middle + half_width * np.linspace(-1, 1, n))


def test_the_published_shares_follow_from_the_published_table() -> None:
    published = {each.name: each.published for each in shares()}
    assert published["claim 3"] == pytest.approx(0.529, abs=0.002)
    assert published["claim 1"] == pytest.approx(0.705, abs=0.001)
    assert math.isnan(published["claim 4, CPU"])


def test_planted_shares_are_found(tmp_path: Path) -> None:
    run = write(tmp_path, off=2.4, none=3.4)
    assert has_all_commits(run)
    found = {each.share.name: each for each in judged_shares(run)}
    flush = found["claim 3"].effect
    write_share = found["claim 1"].effect
    assert flush is not None
    assert write_share is not None
    assert flush.estimate == pytest.approx((1 - 1 / 2.4) / (1 - 1 / 3.4), abs=0.03)
    assert write_share.estimate == pytest.approx(1 - 1 / 3.4, abs=0.05)
    assert found["claim 3"].judgement is Judgement.SHOWN
    assert found["claim 1"].judgement is Judgement.SHOWN
    # The planted core is busy for 80% of the time, give or take: that decides nothing.
    cores = found["claim 4, CPU"].effect
    assert cores is not None
    assert cores.estimate == pytest.approx(0.8, abs=0.02)


def test_a_small_share_is_the_opposite_of_a_claimed_majority(tmp_path: Path) -> None:
    found = {each.share.name: each for each in judged_shares(write(tmp_path, off=1.1, none=3.4))}
    assert found["claim 3"].judgement is Judgement.OPPOSITE
    assert found["claim 3"].size is Size.CONTRADICTED


def test_a_block_where_the_write_costs_nothing_is_left_out(tmp_path: Path) -> None:
    run = write(tmp_path)
    trials = run.valid_trials()
    hit = (trials["block"] == 0) & trials["treatment"].str.contains("none")
    trials.loc[hit, "throughput_rps"] = 1.0
    run.valid_trials = lambda: trials  # type: ignore[method-assign]
    found = {each.share.name: each for each in judged_shares(run)}["claim 3"]
    assert found.left_out == 1
    assert found.effect is not None
    assert found.effect.n == 7


@pytest.mark.parametrize(
    ("by_block", "judgement", "size"),
    [
        (around(0.53, 0.02), Judgement.SHOWN, Size.AGREES),
        (around(0.53, 0.10), Judgement.NOT_SHOWN, Size.AGREES),
        (around(0.53, 0.60), Judgement.NOT_SHOWN, Size.UNDECIDED),
        (around(0.80, 0.02), Judgement.SHOWN, Size.CONTRADICTED),
        (around(0.20, 0.02), Judgement.OPPOSITE, Size.CONTRADICTED),
        (around(0.53, 0.00, n=2), Judgement.NOT_SHOWN, None),
        (pd.Series([math.nan] * 6), Judgement.NOT_SHOWN, None),
    ],
)
def test_the_rule(by_block: pd.Series, judgement: Judgement, size: Size | None) -> None:
    found = judged(HALF, by_block)
    assert (found.judgement, found.size) == (judgement, size)


@pytest.mark.parametrize("middle", [0.3, 0.53, 0.9])
def test_a_wider_interval_never_makes_it_more_favourable(middle: float) -> None:
    rank = {Size.CONTRADICTED: 0, Size.UNDECIDED: 1, Size.AGREES: 2}
    widths = [0.01, 0.05, 0.1, 0.2, 0.4, 0.8]
    found = [judged(HALF, around(middle, width)) for width in widths]
    shown = [each.judgement is Judgement.SHOWN for each in found]
    assert shown == sorted(shown, reverse=True)
    agrees = [each.size is Size.AGREES for each in found]
    assert agrees == sorted(agrees, reverse=True)
    assert all(rank[each.size] <= 2 for each in found if each.size)


def test_a_claim_of_less_holds_below_its_limit() -> None:
    idle = Share("c", "claim", "what", 0.8, above=False)
    assert judged(idle, around(0.4, 0.02)).judgement is Judgement.SHOWN
    assert judged(idle, around(0.95, 0.02)).judgement is Judgement.OPPOSITE


def test_waiting_for_the_flush_is_weighed_against_waiting_for_a_core(tmp_path: Path) -> None:
    run = write(tmp_path)
    valid = run.valid_trials().assign(
        core_wait_share_inference=2.0, core_wait_share_postgres=1.0, core_wait_share_link=0.0
    )
    trials = valid.to_dict("records")
    waits = pd.DataFrame(
        [
            {
                "t_ns": (each["begin_ns"] + each["end_ns"]) // 2, "state": "active",
                "wait_event_type": kind, "wait_event": event, "count": count,
                "trial_id": each["trial_id"], "treatment": each["treatment"],
                "block": each["block"],
            }
            for each in trials
            for kind, event, count in (("IO", "WalSync", 4), ("LWLock", "WALWrite", 5), ("", "", 7))
        ]
    )  # fmt: skip
    run.valid_trials = lambda: valid  # type: ignore[method-assign]
    run.waits = lambda *_: waits  # type: ignore[method-assign]
    found = {each.share.name: each for each in judged_shares(run)}["claim 4, I/O"]
    assert found.effect is not None
    assert found.effect.estimate == pytest.approx(9 / (9 + 3))
    assert found.judgement is Judgement.SHOWN
