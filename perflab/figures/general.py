"""The views that any system can have: what its runs hold decides which of them say something."""

from __future__ import annotations

from perflab.figures.plots.core_time import CORE_TIME
from perflab.figures.plots.database_waits import DATABASE_WAITS
from perflab.figures.plots.effects import EFFECT
from perflab.figures.plots.flush_cost import FLUSH_COST
from perflab.figures.plots.in_flight import IN_FLIGHT
from perflab.figures.plots.latency_ecdf import LATENCY_ECDF
from perflab.figures.plots.profile import PROFILE
from perflab.figures.plots.throughput import THROUGHPUT
from perflab.figures.plots.time_breakdown import TIME_BREAKDOWN

# Of runs whose requests are the work that is measured.
OF_REQUESTS = (EFFECT, THROUGHPUT, LATENCY_ECDF, TIME_BREAKDOWN, CORE_TIME, IN_FLIGHT)
GENERAL_VIEWS = (*OF_REQUESTS, DATABASE_WAITS, FLUSH_COST, PROFILE)
