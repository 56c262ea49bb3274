"""Requests in flight, by exact counts and Little's law, and where a database's backends wait."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from perflab.analysis.accounts.commit_waits import NO_WAIT, has_waits, wait_shares
from perflab.analysis.users_elsewhere import (
    CLIENT,
    CONNECTION,
    ELSEWHERE,
    LAW,
    SERVER,
    WINDOWS,
    counts_between,
    fixed_users,
    in_flight,
    in_flight_varies,
)
from perflab.recordings import Run
from perflab.recordings.columns import TURN_COLUMNS, TURNS
from tests.support.synthetic import ON_AND_OFF, USERS, write_run

MS = 1_000_000
START_NS = 5_000_000_000_000


def requests(*instants_ms: tuple[float, float, float, float]) -> pd.DataFrame:
    """Return requests by planned, started, sent and done, in ms; an instant of NaN never came."""
    names = ["planned_ns", "started_ns", "sent_ns", "done_ns"]
    table = pd.DataFrame(instants_ms, columns=names)
    return (START_NS + table * MS).fillna(0).astype("int64")


def edges_ms(*places: float) -> np.ndarray:
    return START_NS + np.array(places) * MS


def test_a_request_counts_in_every_state_for_as_long_as_it_is_in_it() -> None:
    counts = counts_between(requests((0, 1, 3, 8)), edges_ms(0, 4, 8, 12), users=2)
    assert counts[CLIENT] == pytest.approx([1 / 4, 0, 0])
    assert counts[CONNECTION] == pytest.approx([2 / 4, 0, 0])
    assert counts[SERVER] == pytest.approx([1 / 4, 1, 0])
    assert counts[ELSEWHERE] == pytest.approx([1, 1, 2])


def test_a_request_that_never_reached_an_instant_stays_in_the_state_before() -> None:
    never = math.nan
    unanswered, unconnected = (0, 0, 2, never), (0, 0, never, never)
    refused = (0, 0, never, 4)
    counts = counts_between(requests(unanswered, unconnected, refused), edges_ms(0, 10))
    assert counts[SERVER] == pytest.approx([0.8])
    assert counts[CONNECTION] == pytest.approx([0.2 + 1 + 0.4])


def test_a_run_has_the_median_of_its_trials_and_their_range(tmp_path: Path) -> None:
    run = write_run(tmp_path, requests=400, blocks=4)
    table = in_flight(run)
    rows = table[(table["treatment"] == ON_AND_OFF[0].name) & (table["state"] == SERVER)]
    assert len(rows) == WINDOWS
    assert rows["t_s"].is_monotonic_increasing
    assert (rows["trials"] == 4).all()
    assert ((rows["low"] <= rows["median"]) & (rows["median"] <= rows["high"])).all()
    # There is no think time: all users except those that connect wait for the server.
    assert rows["median"].mean() == pytest.approx(USERS, rel=0.02)
    law = table[table["state"] == LAW].set_index("treatment")["median"]
    assert law[ON_AND_OFF[0].name] == pytest.approx(USERS, rel=0.06)
    assert ELSEWHERE not in set(table["state"]), "a record that names no workload tells no users"


@pytest.mark.parametrize(
    ("arrivals", "users", "varies"),
    [
        ({}, 50, False),
        ({"ramp_s": 1.0, "warmup_s": 2.0}, 50, False),
        ({"ramp_s": 2.0, "warmup_s": 1.0}, math.nan, True),
        ({"think_time_s": 0.1}, 50, True),
        ({"pacing_s": 0.1}, 50, True),
        ({"kind": "open"}, math.nan, True),
    ],
)
def test_users_are_known_where_their_number_stays_and_drawn_where_not_all_always_ask(
    tmp_path: Path, arrivals: dict[str, object], users: float, varies: bool
) -> None:
    run = write_run(tmp_path, requests=20, blocks=1)
    parts = {"w": {"arrivals": {"kind": "closed", "users": 50, **arrivals}}}
    first = run.record.treatments[0].model_copy(update={"parts": {"workload": "w"}})
    run.record = run.record.model_copy(update={"parts": parts, "treatments": [first]})
    assert fixed_users(run.record, first.name) == pytest.approx(users, nan_ok=True)
    assert in_flight_varies(run) == varies


def test_trials_that_take_turns_are_not_drawn_as_if_they_always_were_under_load(
    tmp_path: Path,
) -> None:
    run = write_run(tmp_path)
    assert in_flight_varies(run)
    sharing = {"tables": {TURNS: dict(TURN_COLUMNS)}}
    run.record = run.record.model_copy(update=sharing)
    assert not in_flight_varies(run)


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
    run.table = lambda *_: table  # type: ignore[method-assign]
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
