"""A finished load with a planted truth: raw rows as workers write them, and no load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from perflab.load.clients.outcome import CODES, MEASURE
from perflab.load.records import columns, message_record
from perflab.load.records.result import LoadResult
from perflab.load.records.wakeups import Wakeups
from perflab.load.workload import Request, Scripted, Workload

MS = 1_000_000
S = 1_000_000_000
BEGIN_NS = 3_600 * S
NONE = np.zeros(0)


def scripted(**words: Any) -> Workload:
    """Return a workload of scripted users; the script need not exist."""
    arrivals = Scripted.model_validate({"script": "a:B", "users": 10, "duration_s": 100, **words})
    return Workload(request=Request(), arrivals=arrivals)


def load_result(
    folder: Path,
    done_s: np.ndarray,
    delivered_s: np.ndarray = NONE,
    delays: tuple[np.ndarray, np.ndarray] = (NONE, NONE),
    latency_s: float = 0.3,
    errors: dict[str, int] | None = None,
    change: Callable[[np.ndarray], object] = lambda _: None,
    **facts: Any,
) -> LoadResult:
    """Write and return a load of one worker.

    Requests were done and messages delivered at ``done_s`` and ``delivered_s`` from the load's
    begin, ``latency_s`` after their plan. ``delays`` says when the event loop woke (s) and how late
    (ms), ``errors`` how many of the first requests have an error class. ``change`` gets the rows
    and may change them.
    """
    place = folder / "0"
    place.mkdir(parents=True)
    rows = np.zeros(len(done_s), dtype=columns.ROW)
    rows["done_ns"] = BEGIN_NS + (done_s * S).astype("int64")
    for name in ("planned_ns", "started_ns", "sent_ns"):
        rows[name] = rows["done_ns"] - round(latency_s * S)
    rows["first_byte_ns"] = rows["done_ns"]
    rows["stage"] = MEASURE
    kinds = [kind for kind, number in (errors or {}).items() for _ in range(number)]
    rows["error"][: len(kinds)] = [CODES[kind] for kind in kinds]
    change(rows)
    (place / "requests.rows").write_bytes(rows.tobytes())
    (place / "phases.rows").write_bytes(b"")
    received_rows = np.zeros(len(delivered_s), dtype=message_record.ROW)
    received_rows["at_ns"] = BEGIN_NS + (delivered_s * S).astype("int64")
    received_rows["key"] = received_rows["at_ns"] - round(latency_s * S)
    received_rows["direction"] = message_record.RECEIVED
    (place / "messages.rows").write_bytes(received_rows.tobytes())
    (place / "messages.names").write_text('["price"]')
    woken_s, late_ms = delays
    defaults: dict[str, Any] = {
        "folder": folder, "workers": 1, "cpu_ns": S, "run_delay_share": 0.0, "unsent": 0,
        "capped": 0, "stopped": "", "clock_step_ms": 0.0,
        "real_time": True, "cores": 1, "lasted_s": 1e6,
        "wakeups": [Wakeups(BEGIN_NS + (woken_s * S).astype("int64"), late_ms)],
    }  # fmt: skip
    return LoadResult(**{**defaults, **facts})
