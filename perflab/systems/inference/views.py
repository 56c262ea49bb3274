"""The views of the inference service's runs."""

from __future__ import annotations

from perflab.figures import (
    CAUSES,
    CORE_TIME,
    DATABASE_WAITS,
    EFFECT,
    FLUSH_COST,
    LATENCY_CPU,
    LATENCY_ECDF,
    THROUGHPUT,
    TIME_BREAKDOWN,
    rate_view,
)
from perflab.systems.inference.map_of_flushes import FLUSH_MAP

LATENCY_RATE = rate_view(
    "latency_rate",
    "response times against the rate of requests",
    {f"p{share}_ms": f"p{share}, ms (log)" for share in (50, 95, 99)},
)

VIEWS = (
    EFFECT,
    LATENCY_RATE,
    FLUSH_MAP,
    THROUGHPUT,
    LATENCY_ECDF,
    TIME_BREAKDOWN,
    CORE_TIME,
    DATABASE_WAITS,
    CAUSES,
    LATENCY_CPU,
    FLUSH_COST,
)
