"""What is drawn of the runs of MetricStream."""

from __future__ import annotations

from perflab.figures import EFFECT, IN_FLIGHT, THROUGHPUT, TIME_BREAKDOWN
from perflab.systems.metricstream.figures.client_or_server import CLIENT_OR_SERVER
from perflab.systems.metricstream.figures.life_cycle_parts import LIFE_CYCLE_PARTS
from perflab.systems.metricstream.figures.success_by_phase import SUCCESS_BY_PHASE
from perflab.systems.metricstream.figures.throughput_over_clients import THROUGHPUT_OVER_CLIENTS

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
