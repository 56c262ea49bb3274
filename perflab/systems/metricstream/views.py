"""The views of MetricStream's runs."""

from __future__ import annotations

from perflab.figures import EFFECT, LATENCY_CPU, THROUGHPUT, TIME_BREAKDOWN
from perflab.systems.metricstream.limited_by import CLIENT_OR_SERVER
from perflab.systems.metricstream.request_parts import LIFE_CYCLE_PARTS
from perflab.systems.metricstream.success_by_phase import SUCCESS_BY_PHASE

VIEWS = (
    EFFECT,
    SUCCESS_BY_PHASE,
    LIFE_CYCLE_PARTS,
    CLIENT_OR_SERVER,
    TIME_BREAKDOWN,
    LATENCY_CPU,
    THROUGHPUT,
)
