"""The published load of the MetricStream study as parameters, from its rows."""

from __future__ import annotations

from typing import Any

from perflab.recordings import published_value

STUDY = "metricstream"
OTHERS, PHASES_TABLE = "other published figures", "phases table"
# Where the load stands, by parameter; neither its length nor its time-out is stated.
PUBLISHED = {
    "clients": (OTHERS, "load test", "clients"),
    "target_rate": (OTHERS, "load test", "target_rate"),
}
LONG_TRIAL_S = 10.0


def published_settings() -> dict[str, Any]:
    """Return the parameters that the preset sets."""
    clients, rate = (published_value(STUDY, *place) for place in PUBLISHED.values())
    return {"clients": int(clients), "target_rate": rate, "duration_s": LONG_TRIAL_S}
