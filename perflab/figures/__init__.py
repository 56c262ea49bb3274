"""Figures: views of a run that systems choose from, and saving them with their origin.

:mod:`perflab.reports.figures` decides which views a run has.
"""

from __future__ import annotations

from perflab.figures.canvas import LabFigure
from perflab.figures.export import provenance, save_view
from perflab.figures.plots.cpu import CORE_TIME, LATENCY_CPU, PROFILE
from perflab.figures.plots.database import DATABASE_WAITS, FLUSH_COST
from perflab.figures.plots.effects import EFFECT
from perflab.figures.plots.latency import LATENCY_ECDF, TIME_BREAKDOWN, time_breakdown_view
from perflab.figures.plots.rates import rate_view
from perflab.figures.plots.throughput import IN_FLIGHT, THROUGHPUT, throughput_view
from perflab.figures.view import View, draw_view

# The views of runs that measure requests.
OF_REQUESTS = (
    EFFECT, THROUGHPUT, LATENCY_ECDF, LATENCY_CPU, TIME_BREAKDOWN, CORE_TIME, IN_FLIGHT,
)  # fmt: skip
# The views that a run of any system can have, depending on what it holds.
GENERAL_VIEWS = (*OF_REQUESTS, DATABASE_WAITS, FLUSH_COST, PROFILE)

__all__ = [
    "CORE_TIME", "DATABASE_WAITS", "EFFECT", "FLUSH_COST", "GENERAL_VIEWS", "IN_FLIGHT",
    "LATENCY_CPU", "LATENCY_ECDF", "OF_REQUESTS", "PROFILE", "THROUGHPUT", "TIME_BREAKDOWN",
    "LabFigure", "View", "draw_view", "provenance", "rate_view", "save_view",
    "throughput_view", "time_breakdown_view",
]  # fmt: skip
