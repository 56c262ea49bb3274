"""The views of the inference service's runs."""

from __future__ import annotations

from perflab.figures import (
    CORE_TIME,
    DATABASE_WAITS,
    EFFECT,
    FLUSH_COST,
    IN_FLIGHT,
    LATENCY_ECDF,
    latency_cpu_view,
    throughput_view,
    time_breakdown_view,
)
from perflab.systems.inference.figures.flush_map import FLUSH_MAP
from perflab.systems.inference.figures.shares import CLAIMED_SHARES
from perflab.systems.inference.published_load import published_absolutes

VIEWS = (
    EFFECT,
    FLUSH_MAP,
    CLAIMED_SHARES,
    throughput_view(published_absolutes),
    LATENCY_ECDF,
    time_breakdown_view(published_absolutes),
    CORE_TIME,
    IN_FLIGHT,
    DATABASE_WAITS,
    latency_cpu_view("inference", "postgres"),
    FLUSH_COST,
)
