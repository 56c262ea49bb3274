"""Claims about shares of time: measured per block, judged by a rule fixed beforehand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.evaluation import Finding
from perflab.analysis.results import AgainstStudy
from perflab.recordings import Run
from perflab.systems.inference.time_shares import (
    Share,
    has_all_commits,
    judged_claims,
    judged_shares,
)
from perflab.systems.inference.views import shares_table
from tests.support.synthetic import Planted, write_run
from tests.systems.planned import plan_of

HALF = Share("c", "claim", "what", "share", 0.5, published=0.53)


def commits(off: float = 1.6, none: float = 3.4) -> tuple[Planted, ...]:
    """Return on, off and no write, with throughputs as multiples of that of on."""
    return (
        Planted({"database_write": "yes", "synchronous_commit": "on"}, 1.0),
        Planted({"database_write": "yes", "synchronous_commit": "off"}, off),
        Planted({"database_write": "no", "synchronous_commit": "none"}, none),
    )


def write(folder: Path, **ratios: float) -> Run:
    """Write a run whose parameters are those of the published load."""
    parameters = plan_of("synchronous_commit", concurrency=50).parameters
    return write_run(
        folder, treatments=commits(**ratios), requests=60, blocks=8, noise=0.01, contrasts=[],
        parameters=parameters,
    )  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run for tests that plant their own numbers into it."""
    return write(tmp_path_factory.mktemp("shares")).path


def around(middle: float, half_width: float, n: int = 8) -> pd.Series:
    return pd.Series(middle + half_width * np.linspace(-1, 1, n))


def test_planted_shares_are_found(tmp_path: Path) -> None:
    run = write(tmp_path, off=2.4, none=3.4)
    assert has_all_commits(run)
    findings = judged_shares(run)
    flush = findings["claim 3"].effect
    write_share = findings["claim 1"].effect
    assert flush is not None
    assert write_share is not None
    assert flush.estimate == pytest.approx((1 - 1 / 2.4) / (1 - 1 / 3.4), abs=0.03)
    assert write_share.estimate == pytest.approx(1 - 1 / 3.4, abs=0.05)
    assert findings["claim 3"].verdict.is_shown
    assert findings["claim 1"].verdict.result is AgainstStudy.AS_PUBLISHED
    assert "it holds in 8 of 8 blocks" in findings["claim 1"].verdict.reason
    # The planted core is busy for about 80% of the time, which is the limit.
    cores = findings["claim 4, CPU"].effect
    assert cores is not None
    assert cores.estimate == pytest.approx(0.8, abs=0.02)


def test_a_block_where_the_write_costs_nothing_is_left_out(recorded: Path) -> None:
    run = Run(recorded)
    trials = run.valid_trials()
    without_cost = (trials["block"] == 0) & trials["treatment"].str.contains("none")
    trials.loc[without_cost, "throughput_rps"] = 1.0
    run.valid_trials = lambda: trials  # type: ignore[method-assign]
    finding = judged_shares(run)["claim 3"]
    assert finding.left_out == 1
    assert finding.effect is not None
    assert finding.effect.n == 7


@pytest.mark.parametrize(
    ("by_block", "result"),
    [
        (around(0.53, 0.02), AgainstStudy.AS_PUBLISHED),
        (around(0.53, 0.10), AgainstStudy.NOT_DECIDED),
        (around(0.65, 0.09), AgainstStudy.IN_DIRECTION),
        (around(0.80, 0.02), AgainstStudy.MORE),
        (around(0.20, 0.02), AgainstStudy.OTHER_WAY),
        (pd.Series([math.nan] * 6), AgainstStudy.NOT_MEASURED),
    ],
)
@pytest.mark.promise
def test_the_rule(by_block: pd.Series, result: AgainstStudy) -> None:
    assert HALF.finding(by_block, same_load=True).verdict.result is result


def test_a_share_is_compared_with_its_limit_and_not_with_zero() -> None:
    (above, around_limit) = (HALF.finding(around(middle, 0.02)).verdict for middle in (0.6, 0.5))
    assert (above.result, above.reason) == (
        AgainstStudy.IN_DIRECTION, "the interval excludes 50%; it holds in 8 of 8 blocks",
    )  # fmt: skip
    assert (around_limit.result, around_limit.reason) == (
        AgainstStudy.NOT_DECIDED, "the interval includes 50%; it holds in 4 of 8 blocks",
    )  # fmt: skip


# ---- claim 4: bound by I/O, and not by CPU -----------------------------------------------------


def with_cores(run: Run, busy: float, used_share: float, waiting: float, flushing: int) -> Run:
    """Plant, with commit on, the busy share of the cores, the services' share, and waits."""
    valid = run.valid_trials().assign(
        cpu_share_inference=used_share * 0.7, cpu_share_postgres=used_share * 0.25,
        cpu_share_link=used_share * 0.05,
        core_wait_share_inference=waiting, core_wait_share_postgres=0.0, core_wait_share_link=0.0,
    )  # fmt: skip
    trials = valid.to_dict("records")
    waits = pd.DataFrame(
        [
            {
                "t_ns": (row["begin_ns"] + row["end_ns"]) // 2, "state": "active",
                "wait_event_type": kind, "wait_event": event, "count": count,
                "trial_id": row["trial_id"], "treatment": row["treatment"],
                "block": row["block"],
            }
            for row in trials
            for kind, event, count in (
                ("IO", "WalSync", flushing - 1), ("LWLock", "WALWrite", 1), ("", "", 7)
            )
        ]
    )  # fmt: skip
    spans = ((row["begin_ns"], row["end_ns"], row["trial_id"]) for row in trials)
    samples = pd.DataFrame(
        [
            {"t_ns": at, "service": "core 0", "cpu_ns": int(used), "trial_id": trial_id}
            for begin, end, trial_id in spans
            for at, used in ((begin, 0), (end, busy * (end - begin)))
        ]
    )
    run.valid_trials = lambda: valid  # type: ignore[method-assign]
    tables = {"waits": waits, "samples": samples}
    run.table = lambda name, *_: tables[name]  # type: ignore[method-assign]
    return run


def claim_4(run: Run) -> tuple[str, dict[str, Finding]]:
    return str(judged_claims(run)["claim 4"].verdict), judged_shares(run)


def test_waiting_for_the_flush_is_weighed_against_waiting_for_a_core(recorded: Path) -> None:
    verdict, findings = claim_4(with_cores(Run(recorded), 0.5, 0.4, waiting=3.0, flushing=9))
    effect = findings["claim 4, I/O"].effect
    assert effect is not None
    assert effect.estimate == pytest.approx(9 / (9 + 3))
    assert all(item.verdict.is_shown for name, item in findings.items() if "4" in name)
    assert verdict == "in the direction published"


@pytest.mark.parametrize(
    ("busy", "used_share", "waiting", "verdict"),
    [
        (0.97, 0.93, 1.0, "the other way"),  # full of the services themselves
        (0.97, 0.40, 1.0, "not testable here"),  # full of others
        (0.50, 0.40, 30.0, "the other way"),  # threads waited for cores that were free
        (0.50, 0.40, 1.0, "in the direction published"),
    ],
)
def test_full_cores_speak_against_the_claim_where_services_fill_them(
    recorded: Path, busy: float, used_share: float, waiting: float, verdict: str
) -> None:
    assert claim_4(with_cores(Run(recorded), busy, used_share, waiting, flushing=9))[0] == verdict


def test_the_reason_that_others_filled_the_cores_is_told(recorded: Path) -> None:
    run = with_cores(Run(recorded), 0.97, 0.40, waiting=2.5, flushing=9)
    claim = judged_claims(run)["claim 4"]
    reason = claim.findings[0].verdict.reason
    assert reason == (
        "other processes filled the services' cores: the cores were busy 97% of the time, but "
        "services used only 40% of it"
    )
    assert reason in claim.verdict.reason
    reasons = shares_table(run).set_index("claim")["reason"]
    assert reasons["claim 4, CPU: the system is not bound by CPU"] == reason
    assert reasons["claim 4, I/O: the system is bound by I/O"] == ""
