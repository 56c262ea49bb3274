"""What is drawn of the runs of the LLM proxy."""

from __future__ import annotations

from perflab.figures import EFFECT, IN_FLIGHT, LATENCY_ECDF, TIME_BREAKDOWN
from perflab.systems.llm.figures.capacity_by_method import CAPACITY_BY_METHOD
from perflab.systems.llm.figures.cost_rows import STREAM_COSTS
from perflab.systems.llm.figures.pacing_ratios import PACING_RATIOS
from perflab.systems.llm.figures.stream_times import STREAM_TIMES
from perflab.systems.llm.figures.users_by_limit import USERS_BY_LIMIT

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
