"""Where a database's backends wait, by planted samples of the measured stage."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from perflab.analysis.accounts.commit_waits import NO_WAIT, has_waits, wait_shares
from perflab.recordings import Run
from tests.support.synthetic import ON_AND_OFF, write_run

ON = ON_AND_OFF[0].name


def waiting(folder: Path, *rows: tuple[str, str, str, int], outside: int = 0) -> Run:
    """Write a run; the look at the middle of each trial finds the backends in ``rows``."""
    run = write_run(folder, requests=30, blocks=3)
    trials = run.valid_trials().to_dict("records")
    samples = [
        {
            "t_ns": t_ns, "state": state, "wait_event_type": kind, "wait_event": event,
            "count": count, "trial_id": row["trial_id"], "treatment": row["treatment"],
            "block": row["block"],
        }
        for row in trials
        for t_ns, more in (((row["begin_ns"] + row["end_ns"]) // 2, 0), (row["end_ns"] + 9, 1))
        for state, kind, event, count in (rows if not more else [("active", "IO", "X", outside)])
        if count
    ]  # fmt: skip
    table = pd.DataFrame(samples)
    run.table = lambda *_: table
    return run


def test_shares_are_of_active_backends_in_the_measured_stage(tmp_path: Path) -> None:
    run = waiting(
        tmp_path,
        ("active", "IO", "WALSync", 6),
        ("active", "LWLock", "WALWrite", 3),
        ("active", "", "", 1),
        ("idle", "Client", "ClientRead", 30),
        outside=50,
    )
    shares = wait_shares(run).query("treatment == @ON").set_index("event")
    assert shares["share"].to_dict() == pytest.approx(
        {"IO: WalSync": 0.6, "LWLock: WALWrite": 0.3, NO_WAIT: 0.1}
    )
    assert (shares["trials"] == 3).all()
    assert (shares["samples"] == 30).all()
    assert (shares["backends"] == 10).all()
    assert next(iter(shares.index)) == "IO: WalSync"


def test_a_database_without_an_active_backend_has_no_share(tmp_path: Path) -> None:
    run = waiting(tmp_path, ("idle", "Client", "ClientRead", 30))
    assert has_waits(run)
    assert wait_shares(run).empty
