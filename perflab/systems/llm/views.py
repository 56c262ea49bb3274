"""The views of the LLM proxy's runs."""

from __future__ import annotations

from perflab.figures import EFFECT, IN_FLIGHT, LATENCY_ECDF, TIME_BREAKDOWN
from perflab.systems.llm.figures.capacity import CAPACITY_BY_METHOD, USERS_BY_LIMIT
from perflab.systems.llm.figures.costs import STREAM_COSTS
from perflab.systems.llm.figures.streams import PACING_RATIOS, STREAM_TIMES

VIEWS = (
    EFFECT,
    STREAM_TIMES,
    STREAM_COSTS,
    PACING_RATIOS,
    USERS_BY_LIMIT,
    CAPACITY_BY_METHOD,
    LATENCY_ECDF,
    IN_FLIGHT,
    TIME_BREAKDOWN,
)
