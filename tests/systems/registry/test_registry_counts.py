"""The instrument that asks a registry for its counts: silence is a row without numbers, not 0."""

from __future__ import annotations

import json
import math
import socket

import pytest

from perflab.systems.registry import counts
from perflab.systems.registry.counts import TABLE, _RegistryCounts

TOLD = {"open": 3, "waiting_for_thread": 2, "store_discarded": 5}


def test_what_is_answered_is_kept_with_its_place_and_its_instants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counts, "exchange", lambda *_: (200, json.dumps(TOLD)))
    look = _RegistryCounts(port=0)
    look.after()
    (row,) = look.left()[TABLE].to_dict("records")
    assert (row["in_flight"], row["waiting_for_thread"], row["store_discarded"]) == (3, 2, 5)
    assert math.isnan(row["most_in_flight"])
    assert 0 < row["t_ns"] <= row["answered_ns"]


def test_who_does_not_answer_leaves_a_row_without_numbers() -> None:
    with socket.socket() as deaf:
        # Bound, so that nobody else gets the port, and nobody listens.
        deaf.bind(("127.0.0.1", 0))
        look = _RegistryCounts(deaf.getsockname()[1])
        look.after()
    (row,) = look.left()[TABLE].to_dict("records")
    assert row["answered_ns"] == 0
    assert math.isnan(row["in_flight"])
    assert math.isnan(row["store_discarded"])
