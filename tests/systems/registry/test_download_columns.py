"""Columns and bars of downloads: time-outs give bounds, and missing answers give NaN."""

from __future__ import annotations

import math
import socket
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from perflab.systems.registry.counts import (
    COUNTED,
    TABLE,
    RegistryCounts,
    counted_columns,
    download_columns,
)
from perflab.systems.registry.waterfall import (
    CAME_WHOLE,
    FAILS,
    GIVEN_UP,
    TIMED_OUT,
    WAITS,
    Spans,
)

SECOND = 1_000_000_000


def downloads(*ended: tuple[float, str]) -> pd.DataFrame:
    """Return downloads that start at 100 s; ``ended`` has their seconds and errors."""
    return pd.DataFrame(
        {
            "planned_ns": [100 * SECOND] * len(ended),
            "done_ns": [round((100 + seconds) * SECOND) for seconds, _ in ended],
            "bytes": [0 if error else 2_000_000 for _, error in ended],
            "error": [error for _, error in ended],
        }
    )


def test_complete_downloads_have_a_total_duration_and_a_fastest() -> None:
    columns = download_columns(downloads((1.0, ""), (4.0, "")))
    assert columns == {
        "succeeded": 2.0, "total_duration_s": 4.0, "fastest_ms": 1000.0,
        "told_succeeded": 2.0, "told_total_duration_s": 4.0,
    }  # fmt: skip


def test_downloads_that_timed_out_give_lower_bounds_only() -> None:
    some = download_columns(downloads((1.0, ""), (30.0, "timeout")))
    assert math.isnan(some["total_duration_s"])
    assert some["total_duration_s_at_least"] == some["told_total_duration_s_at_least"] == 30.0
    assert some["fastest_ms"] == 1000.0
    none = download_columns(downloads((30.0, "timeout"), (30.0, "timeout")))
    assert none["succeeded"] == 0.0
    assert math.isnan(none["fastest_ms"])
    assert none["fastest_at_least_ms"] == 30_000.0


def looks(*rows: tuple[float, float, dict[str, float]]) -> pd.DataFrame:
    """Return looks at the counts, from question (s), answer (s; 0: none) and numbers."""
    records: list[dict[str, Any]] = []
    for question_s, answer_s, numbers in rows:
        counted = dict.fromkeys(COUNTED, 0.0 if answer_s else math.nan) | numbers
        instants = {"t_ns": round(question_s * SECOND), "answered_ns": round(answer_s * SECOND)}
        records.append({**instants, **counted})
    return pd.DataFrame(records)


def test_counts_are_those_of_the_last_answer() -> None:
    table = looks(
        (9.9, 9.91, {}),
        (10.1, 10.2, {"most_waiting_for_thread": 68.0, "working_threads": 32.0}),
        (13.5, 13.6, {"most_waiting_for_thread": 68.0, "store_discarded": 22.0}),
    )
    columns = counted_columns(table, 13 * SECOND)
    assert (columns["most_waiting"], columns["store_connections_discarded"]) == (68.0, 22.0)
    assert columns["longest_silence_ms"] == pytest.approx(100.0)


def test_an_answer_from_before_a_silence_is_not_used_for_it() -> None:
    table = looks((9.9, 9.91, {}), (10.1, 0, {}), (13.1, 0, {}), (16.1, 0, {}), (20.5, 0, {}))
    columns = counted_columns(table, 20 * SECOND)
    assert math.isnan(columns["most_waiting"])
    assert math.isnan(columns["store_connections_discarded"])
    assert math.isnan(columns["longest_silence_ms"])
    assert columns["longest_silence_at_least_ms"] == pytest.approx(9_900.0)


def test_a_silence_that_ended_has_a_length_and_no_bound() -> None:
    table = looks((10.1, 0, {}), (13.1, 14.1, {}), (14.2, 14.21, {}), (15.5, 15.6, {}))
    columns = counted_columns(table, 15 * SECOND)
    assert columns["longest_silence_ms"] == pytest.approx(4_000.0)
    assert "longest_silence_at_least_ms" not in columns


def test_a_missing_answer_leaves_a_row_without_numbers() -> None:
    with socket.socket() as deaf:
        # The port is bound and nobody listens on it.
        deaf.bind(("127.0.0.1", 0))
        launch = SimpleNamespace(control_port=deaf.getsockname()[1])
        scene: Any = SimpleNamespace(instance=lambda _: SimpleNamespace(launch=launch))
        sensor = RegistryCounts().sensor(scene)
        sensor.after()
    (row,) = sensor.left()[TABLE].to_dict("records")
    assert row["answered_ns"] == 0
    assert math.isnan(row["in_flight"])
    assert math.isnan(row["store_discarded"])


def test_a_download_that_was_refused_is_not_drawn_as_one_that_timed_out() -> None:
    times = {"begin_s": 0.0, "work_s": 1.0, "first_s": 2.0, "end_s": 3.0}
    table = pd.DataFrame(
        [
            {"place": place, "outcome": outcome, **times}
            for place, outcome in enumerate((CAME_WHOLE, TIMED_OUT, "connect"))
        ]
    )
    nothing: Any = None
    axes = Figure().add_subplot()
    Spans().draw(axes, table, nothing)
    drawn = {layer.get_gid(): len(layer.get_paths()) for layer in axes.collections}
    assert [drawn[words] for words in (WAITS, GIVEN_UP, FAILS)] == [1, 1, 1]
    assert FAILS in [line.get_label() for line in Spans().key(table, nothing)]
    assert FAILS not in [line.get_label() for line in Spans().key(table.iloc[:2], nothing)]
