"""Whether a trial's streams may be used: lost messages, cut connections, a client at its limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from perflab.load.selfcheck import MAX_CLIENT_CPU

# What a connection was given in the instant its user closed it may never be read.
MAX_LOST_SHARE = 1e-4


def count_columns(
    table: pd.DataFrame, counts: Mapping[str, Mapping[str, Any]]
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return columns, reasons and warnings from what the servers counted themselves.

    Servers that count ``received``, ``delivered`` and ``dropped`` messages are held against what
    was sent and what was read; -1 where nobody counts.
    """
    counted = [each for each in counts.values() if "delivered" in each]
    if not counted:
        return {"server_received": -1, "server_delivered": -1, "server_dropped": -1}, [], []
    received, delivered, dropped = (
        sum(int(each.get(name, 0)) for each in counted)
        for name in ("received", "delivered", "dropped")
    )
    sent = int((table["kind"] == "send").sum())
    read = int((table["kind"] == "delivery").sum())
    refused = {code: n for each in counted for code, n in (each.get("refused") or {}).items() if n}
    reasons, warnings = [], []
    if received != sent:
        reasons.append(f"{sent} messages were sent, the server received {received}")
    lost = delivered - read
    if lost < 0 or lost > MAX_LOST_SHARE * max(1, delivered):
        reasons.append(f"the server delivered {delivered} messages, the receivers read {read}")
    elif lost:
        warnings.append(f"{lost} of {delivered} delivered messages were not read by a leaving user")
    if refused:
        named = ", ".join(f"{n} {code}" for code, n in refused.items())
        reasons.append(f"the server refused frames or users ({named})")
    row = {
        "server_received": received,
        "server_delivered": delivered,
        "server_dropped": dropped,
        "messages_lost": lost,
    }
    return row, reasons, warnings


def stream_reasons(row: Mapping[str, Any], table: pd.DataFrame) -> list[str]:
    """Return why a trial's streams may not be used."""
    reasons = []
    cut = int((table["kind"] == "cut").sum())
    if cut:
        reasons.append(f"{cut} WebSockets ended before their users left")
    errors = int((table["kind"] == "error").sum())
    if errors:
        reasons.append(f"{errors} frames were answered with an error")
    busy = row.get("plateau_cpu_share_client", math.nan)
    if busy > MAX_CLIENT_CPU:
        reasons.append(
            f"the client used {busy:.0%} of a core on the plateau: the limit may be its own"
        )
    return reasons
