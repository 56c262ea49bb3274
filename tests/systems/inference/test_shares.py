"""Claims about shares of time: ordinary contrasts with a limit, on responses of a trial."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from perflab.analysis.evaluation import Finding, evaluate
from perflab.analysis.findings import joined
from perflab.analysis.results import AgainstStudy
from perflab.recordings import Run
from tests.support.planted_trial import Planted
from tests.support.synthetic import write_run
from tests.systems.planned import plan_of


def commits(off: float = 1.6, none: float = 3.4) -> tuple[Planted, ...]:
    """Return on, off and no write, with throughputs as multiples of that of on."""
    return (
        Planted({"database_write": "yes", "synchronous_commit": "on"}, 1.0),
        Planted({"database_write": "yes", "synchronous_commit": "off"}, off),
        Planted({"database_write": "no", "synchronous_commit": "none"}, none),
    )


def write(folder: Path, **ratios: float) -> Run:
    """Write a run whose parameters and contrasts are those of the published load."""
    plan = plan_of("synchronous_commit", preset="published")
    return write_run(
        folder, treatments=commits(**ratios), requests=60, blocks=8, noise=0.01,
        contrasts=plan.contrasts, parameters=plan.parameters,
    )  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run for tests that plant their own numbers into it."""
    return write(tmp_path_factory.mktemp("shares")).path


def by_name(run: Run) -> dict[str, Finding]:
    return {finding.contrast.name: finding for finding in evaluate(run)}


def test_planted_shares_are_found(tmp_path: Path) -> None:
    findings = by_name(write(tmp_path, off=2.4, none=3.4))
    flush = findings["claim 3"].effect
    write_share = findings["claim 1"].effect
    assert flush is not None
    assert write_share is not None
    assert flush.estimate == pytest.approx((1 - 1 / 2.4) / (1 - 1 / 3.4), abs=0.03)
    assert write_share.estimate == pytest.approx(1 - 1 / 3.4, abs=0.05)
    assert findings["claim 3"].verdict.is_shown
    assert findings["claim 1"].verdict.result is AgainstStudy.AS_PUBLISHED
    # The planted core is busy for about 80% of the time, which is the limit.
    cores = findings["claim 4, CPU"].effect
    assert cores is not None
    assert cores.estimate == pytest.approx(0.8, abs=0.02)


def test_a_block_where_the_write_costs_nothing_is_left_out(recorded: Path) -> None:
    run = Run(recorded)
    trials = run.trials()
    without_cost = (trials["block"] == 0) & trials["treatment"].str.contains("none")
    trials.loc[without_cost, "throughput_rps"] = 1.0
    run.trials = lambda: trials  # type: ignore[method-assign]
    finding = by_name(run)["claim 3"]
    assert finding.left_out == 1
    assert finding.effect is not None
    assert finding.effect.n == 7


# ---- claim 4: bound by I/O, and not by CPU -----------------------------------------------------


def with_cores(run: Run, busy: float, used_share: float, waiting: float, flushing: int) -> Run:
    """Plant, with commit on, the busy share of the cores, the services' share, and waits."""
    planted = run.trials().assign(
        cpu_share_inference=used_share * 0.7, cpu_share_postgres=used_share * 0.25,
        cpu_share_link=used_share * 0.05,
        core_wait_share_inference=waiting, core_wait_share_postgres=0.0, core_wait_share_link=0.0,
    )  # fmt: skip
    trials = planted.to_dict("records")
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
    run.trials = lambda: planted  # type: ignore[method-assign]
    tables = {"waits": waits, "samples": samples}
    run.table = lambda name, *_: tables[name]  # type: ignore[method-assign]
    return run


def claim_4(run: Run) -> tuple[str, dict[str, Finding]]:
    findings = by_name(run)
    parts = [findings["claim 4, CPU"], findings["claim 4, I/O"]]
    return str(joined(parts)), findings


def test_waiting_for_the_flush_is_weighed_against_waiting_for_a_core(recorded: Path) -> None:
    verdict, findings = claim_4(with_cores(Run(recorded), 0.5, 0.45, waiting=3.0, flushing=9))
    effect = findings["claim 4, I/O"].effect
    assert effect is not None
    assert effect.estimate == pytest.approx(9 / (9 + 3))
    assert all(item.verdict.is_shown for name, item in findings.items() if "4" in name)
    assert verdict == "in the direction published"


@pytest.mark.parametrize(
    ("busy", "used_share", "waiting", "verdict"),
    [
        (0.97, 0.93, 1.0, "the other way"),  # full of the services themselves
        (0.97, 0.40, 1.0, "not decided"),  # full of others: the services may have needed less
        (0.97, 0.40, 30.0, "not decided"),  # full of others, for whom threads may have waited
        (0.50, 0.45, 30.0, "the other way"),  # threads waited for cores that were free
        (0.50, 0.45, 1.0, "in the direction published"),
    ],
)
@pytest.mark.promise
def test_full_cores_speak_against_the_claim_where_services_fill_them(
    recorded: Path, busy: float, used_share: float, waiting: float, verdict: str
) -> None:
    assert claim_4(with_cores(Run(recorded), busy, used_share, waiting, flushing=9))[0] == verdict


def test_what_others_used_of_the_cores_lies_within_the_interval(recorded: Path) -> None:
    _, findings = claim_4(with_cores(Run(recorded), 0.97, 0.40, waiting=2.5, flushing=9))
    effect = findings["claim 4, CPU"].effect
    assert effect is not None
    assert (effect.low, effect.high) == pytest.approx((0.40, 0.97))
    assert math.isfinite(effect.estimate)
