"""The record of messages: kinds, a script's own words, are read back as they were noted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perflab.load.checks.selfcheck import check
from perflab.load.records.message_record import (
    DIRECTIONS,
    MOST_KINDS,
    RECEIVED,
    SENT,
    MessageRecorder,
    messages,
)
from tests.load.planted import BEGIN_NS, S, load_result, scripted

INT64, INT32 = st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**31 - 1)
NOTES = st.tuples(INT64, INT32, st.sampled_from([SENT, RECEIVED]), INT32, INT64, st.text())


@settings(max_examples=40, deadline=None)
@given(st.lists(NOTES, max_size=40))
def test_noted_messages_are_read_back(notes: list[tuple[int, int, int, int, int, str]]) -> None:
    with TemporaryDirectory() as place:
        recorder = MessageRecorder(Path(place))
        for note in notes:
            recorder.add(*note)
        recorder.close()
        table = messages(Path(place), 3)
    names = ["at_ns", "user", "direction", "bytes", "key", "kind"]
    assert [tuple(row) for row in table[names].to_numpy(object)] == [
        (at_ns, user, DIRECTIONS[direction], size, key, kind)
        for at_ns, user, direction, size, key, kind in notes
    ]
    assert set(table["worker"]) <= {3}


def test_workers_with_kinds_in_different_orders_are_joined(tmp_path: Path) -> None:
    for worker, kinds in enumerate((["offer", "bid"], ["bid", "offer", "sold"])):
        recorder = MessageRecorder(tmp_path / str(worker))
        for place, kind in enumerate(kinds):
            recorder.add(10 * worker + place, worker, SENT, 1, kind=kind)
        recorder.close()
    planted = load_result(tmp_path / "planted", np.zeros(0))
    joined = replace(planted, folder=tmp_path, workers=2).messages
    assert joined["kind"].tolist() == ["offer", "bid", "bid", "offer", "sold"]


def test_more_kinds_than_a_row_can_tell_apart_are_refused(tmp_path: Path) -> None:
    recorder = MessageRecorder(tmp_path)
    for number in range(MOST_KINDS):
        recorder.add(0, 0, SENT, 1, kind=f"kind {number}")
    with pytest.raises(ValueError, match="'one more' is one kind of messages too many"):
        recorder.add(0, 0, SENT, 1, kind="one more")
    recorder.close()
    assert messages(tmp_path, 0)["kind"].tolist() == [f"kind {n}" for n in range(MOST_KINDS)]


@pytest.mark.parametrize(("received_ms", "late"), [(500.0, False), (5.0, True)])
def test_a_late_sender_is_judged_by_the_times_of_its_own_kinds(
    tmp_path: Path, received_ms: float, late: bool
) -> None:
    load = load_result(tmp_path, np.arange(200) / 100, delays=(np.arange(400) / 200, np.zeros(400)))
    recorder = MessageRecorder(tmp_path / "0")
    for number in range(4000):
        planned_ns = BEGIN_NS + number * S // 2000
        recorder.add(planned_ns + 1_500_000, 1, SENT, 9, planned_ns, "bid")
        at_ns = planned_ns + round(received_ms * 1e6)
        recorder.add(at_ns, 2, RECEIVED, 9, planned_ns, "price")
    recorder.close()
    reasons = check(load, scripted()).reasons
    assert any("generator lag" in reason for reason in reasons) == late
