"""The published load of the chat study as parameters, from its rows."""

from __future__ import annotations

from typing import Any, Literal

from perflab.recordings import published_value

Pings = Literal["planned", "closed"]


def published_settings() -> dict[str, Any]:
    """Return the parameters that make the load of every experiment on chat the published one."""
    one_at_a_time = published_value("chat", "workload", "monitor", "pings_in_flight") == 1
    return {
        "actions": int(published_value("chat", "workload", "base case", "actions")),
        "join_s": published_value("chat", "workload", "base case", "join_delay"),
        "action_s": published_value("chat", "workload", "base case", "action_delay"),
        "subscriber_share": published_value(
            "chat", "system", "all", "receivers_per_message_per_user"
        ),
        "pings": "closed" if one_at_a_time else "planned",
    }
