"""What an answer costs the cores: accounts of threads, per answer, not parts of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab.analysis.accounts.core_accounts import (
    ALL_SERVICES,
    AVAILABLE,
    ON_CORE,
    WAITING,
    CoreAccount,
    core_time,
)
from perflab.recordings import Run
from tests.support.synthetic import ON_AND_OFF, write_run

ON = ON_AND_OFF[0].name


def accounted(folder: Path, seen: float = 1.0) -> Run:
    """Write a run at a steady 320/s whose services use 0.8 of a core, 6.4 threads waiting."""
    run = write_run(folder, requests=40, blocks=4, noise=0.0, block_noise=0.0)
    cpu = {"inference": 0.5, "postgres": 0.3, "link": 0.0}
    waits = {"inference": 4.8, "postgres": 1.6, "link": 0.0}
    columns = {}
    for name in cpu:
        columns[f"cpu_share_{name}"] = cpu[name]
        columns[f"run_share_{name}"] = cpu[name] * (seen if name == "postgres" else 1.0)
        columns[f"core_wait_share_{name}"] = waits[name]
    trials, valid = run.trials().assign(**columns), run.valid_trials().assign(**columns)
    run.trials = lambda: trials  # type: ignore[method-assign]
    run.valid_trials = lambda: valid  # type: ignore[method-assign]
    return run


def test_shares_of_a_second_become_times_per_answer(tmp_path: Path) -> None:
    table = core_time(accounted(tmp_path))
    account = CoreAccount(table[table["treatment"] == ON])
    assert account.value(ALL_SERVICES, ON_CORE) == pytest.approx(0.8 / 320 * 1000, rel=0.01)
    assert account.value("inference", ON_CORE) == pytest.approx(0.5 / 320 * 1000, rel=0.01)
    assert account.value(ALL_SERVICES, WAITING) == pytest.approx(6.4 / 320 * 1000, rel=0.01)
    # Services, database and link share core 0: one core, not three.
    assert account.value(ALL_SERVICES, AVAILABLE) == pytest.approx(1 / 320 * 1000, rel=0.01)
    assert account.busy() == pytest.approx(0.8)


def test_texts_have_intervals_and_a_service_whose_threads_ended_unseen_is_known(
    tmp_path: Path,
) -> None:
    table = core_time(accounted(tmp_path / "seen"))
    account = CoreAccount(table[table["treatment"] == ON])
    assert account.text(ALL_SERVICES, ON_CORE) == "2.50 [2.50, 2.50]"
    assert account.services == ["inference", "postgres", "link"]
    assert account.partly_seen() == []
    unseen = core_time(accounted(tmp_path / "unseen", seen=0.4))
    assert CoreAccount(unseen[unseen["treatment"] == ON]).partly_seen() == ["postgres"]
