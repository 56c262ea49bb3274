"""The views of MetricStream's runs."""

from __future__ import annotations

from perflab.figures import EFFECT, IN_FLIGHT, THROUGHPUT, TIME_BREAKDOWN
from perflab.systems.metricstream.figures.clients import CLIENT_OR_SERVER, THROUGHPUT_OVER_CLIENTS
from perflab.systems.metricstream.figures.life_cycle import LIFE_CYCLE_PARTS, SUCCESS_BY_PHASE

VIEWS = (
    EFFECT,
    SUCCESS_BY_PHASE,
    LIFE_CYCLE_PARTS,
    THROUGHPUT_OVER_CLIENTS,
    CLIENT_OR_SERVER,
    TIME_BREAKDOWN,
    THROUGHPUT,
    IN_FLIGHT,
)
