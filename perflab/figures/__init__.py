"""Figures: views of a run that systems choose from, and saving them with their origin.

:mod:`perflab.reports.figures` decides which views a run has.
"""

from __future__ import annotations

from perflab.figures.canvas import LabFigure
from perflab.figures.export import provenance, save_view
from perflab.figures.plots.causes import CAUSES
from perflab.figures.plots.core_time import CORE_TIME
from perflab.figures.plots.database_waits import DATABASE_WAITS
from perflab.figures.plots.effects import EFFECT
from perflab.figures.plots.flush_cost import FLUSH_COST
from perflab.figures.plots.latency_cpu import LATENCY_CPU
from perflab.figures.plots.latency_ecdf import LATENCY_ECDF
from perflab.figures.plots.profile import PROFILE
from perflab.figures.plots.rates import rate_view
from perflab.figures.plots.throughput import THROUGHPUT
from perflab.figures.plots.time_breakdown import TIME_BREAKDOWN
from perflab.figures.view import View, draw_view

# The views of runs that measure requests.
OF_REQUESTS = (EFFECT, THROUGHPUT, LATENCY_ECDF, LATENCY_CPU, TIME_BREAKDOWN, CORE_TIME)
# The views that a run of any system can have, depending on what it holds.
GENERAL_VIEWS = (*OF_REQUESTS, CAUSES, DATABASE_WAITS, FLUSH_COST, PROFILE)

__all__ = [
    "CAUSES", "CORE_TIME", "DATABASE_WAITS", "EFFECT", "FLUSH_COST", "GENERAL_VIEWS",
    "LATENCY_CPU", "LATENCY_ECDF", "OF_REQUESTS", "PROFILE", "THROUGHPUT", "TIME_BREAKDOWN",
    "LabFigure", "View", "draw_view", "provenance", "rate_view", "save_view",
]  # fmt: skip
