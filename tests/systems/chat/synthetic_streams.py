"""Messages of crowds with a planted truth, and runs of ladders: no service, no load."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from perflab.load.records.message_record import RECEIVED, SENT
from perflab.recordings import Run
from perflab.trials.plan import Treatment
from tests.support.synthetic import HOUR_NS
from tests.systems.planned import write_planned

S = 1_000_000_000
RECEIVERS = 4


def messages_table(*rows: tuple[float, int, int, str, float]) -> pd.DataFrame:
    """Return a table as workers record it, from at (s), user, direction, kind, planned (s)."""
    return pd.DataFrame(
        {
            "worker": np.zeros(len(rows), dtype=np.int16),
            "direction": ["sent" if row[2] == SENT else "received" for row in rows],
            "at_ns": [HOUR_NS + round(row[0] * S) for row in rows],
            "user": [row[1] for row in rows],
            "bytes": 100,
            "key": [HOUR_NS + round(row[4] * S) if row[4] >= 0 else 0 for row in rows],
            "kind": [row[3] for row in rows],
        }
    )


def crowd(
    users: int = 20, join_s: float = 0.5, acting_s: float = 30.0, delay_s: float = 0.004,
    growth: float = 0.0,
) -> pd.DataFrame:  # fmt: skip
    """Return the messages of users who join, send every second to ``RECEIVERS`` users, and leave.

    From the last join on, deliveries take ``growth`` seconds longer with every second.
    """
    rows: list[tuple[float, int, int, str, float]] = []
    for user in range(users):
        joined_s = user * join_s
        rows.append((joined_s, user, SENT, "connected", -1))
        for step in range(int(acting_s)):
            planned_s = joined_s + (step + 1) + 0.013 * user
            latency_s = delay_s + growth * max(0.0, planned_s - join_s * users)
            rows.append((planned_s + 0.0001, user, SENT, "send", planned_s))
            rows.append((planned_s + delay_s, user, RECEIVED, "ack", planned_s))
            rows += [
                (planned_s + latency_s * (1 + receiver), receiver, RECEIVED, "delivery", planned_s)
                for receiver in range(RECEIVERS)
            ]
        rows.append((joined_s + acting_s + 2, user, SENT, "left", -1))
    for second in range(int(acting_s)):
        rows.append((second + 0.5, users, SENT, "ping", second + 0.5))
        rows.append((second + 0.502, users, RECEIVED, "pong", second + 0.5))
    return messages_table(*rows)


def counts_of(messages: pd.DataFrame, **changes: Any) -> dict[str, Any]:
    """Return the counts of a server that lost nothing."""
    number = Counter(messages["kind"])
    counts = {"received": number["send"], "delivered": number["delivery"], "refused": {}}
    nothing = dict.fromkeys(("dropped", "acknowledged", "stored", "not_stored"), 0)
    return {**counts, **nothing, **changes}


def cpu(messages: pd.DataFrame, joined_extra: float = 0.0, joining_s: float = 10.0) -> pd.DataFrame:
    """Return samples of a service at 20% of a core, and more while users join."""
    t_s = np.arange(-1.0, (messages["at_ns"].max() - HOUR_NS) / S + 1.0, 0.05)
    share = 0.2 + joined_extra * ((t_s >= 0) & (t_s < joining_s))
    used_ns = np.cumsum(share * 0.05 * S)
    frames = [
        pd.DataFrame(
            {
                "t_ns": HOUR_NS + (t_s * S).astype("int64"),
                "service": name,
                "cpu_ns": (used_ns * part).astype("int64"),
                "memory_bytes": 1,
            }
        )
        for name, part in (("chat", 1.0), ("client", 0.5))
    ]
    return pd.concat(frames, ignore_index=True)


def write_ladder(root: Path, planted: dict[str, list[dict[str, Any]]]) -> Run:
    """Write a run of rungs with one trial for each planted row.

    A row may name ``state`` and any column; percentiles that it does not name are far below every
    target.
    """

    def plant(treatment: Treatment, block: int, _: int) -> tuple[dict[str, Any], None, Any]:
        defaults = {
            "delivery_p90_ms": 50.0, "delivery_p95_ms": 60.0, "delivery_p99_ms": 90.0,
            "messages_per_s": 0.1 * int(treatment.levels["users"]) ** 2,
            "plateau_cpu_share_chat": 0.4,
        }  # fmt: skip
        return {**defaults, **planted[treatment.levels["rung"]][block]}, None, {}

    blocks = max(map(len, planted.values()))
    return write_planned(root, "chat_ladder", plant, rungs=list(planted), blocks=blocks)
