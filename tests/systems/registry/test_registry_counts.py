"""The instrument that reads a registry's counts: silence is a row without numbers."""

from __future__ import annotations

import json
import math
import socket

import pytest

from perflab.systems.registry import counts
from perflab.systems.registry.counts import TABLE, _RegistryCounts

ANSWER = {"open": 3, "waiting_for_thread": 2, "store_discarded": 5}


def test_an_answer_becomes_a_row_with_its_instants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counts, "exchange", lambda *_: (200, json.dumps(ANSWER)))
    look = _RegistryCounts(port=0)
    look.after()
    (row,) = look.left()[TABLE].to_dict("records")
    assert (row["in_flight"], row["waiting_for_thread"], row["store_discarded"]) == (3, 2, 5)
    assert math.isnan(row["most_in_flight"])
    assert 0 < row["t_ns"] <= row["answered_ns"]


def test_a_missing_answer_leaves_a_row_without_numbers() -> None:
    with socket.socket() as deaf:
        # The port is bound and nobody listens on it.
        deaf.bind(("127.0.0.1", 0))
        look = _RegistryCounts(deaf.getsockname()[1])
        look.after()
    (row,) = look.left()[TABLE].to_dict("records")
    assert row["answered_ns"] == 0
    assert math.isnan(row["in_flight"])
    assert math.isnan(row["store_discarded"])
