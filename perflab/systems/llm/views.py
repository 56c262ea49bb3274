"""The views of the LLM proxy's runs."""

from __future__ import annotations

from perflab.figures import EFFECT, LATENCY_CPU, LATENCY_ECDF, TIME_BREAKDOWN
from perflab.systems.llm.proxy_cpu import STREAM_COSTS
from perflab.systems.llm.stream_times import STREAM_TIMES
from perflab.systems.llm.users_at_failure import USERS_BY_LIMIT

VIEWS = (
    EFFECT,
    STREAM_TIMES,
    STREAM_COSTS,
    USERS_BY_LIMIT,
    LATENCY_ECDF,
    LATENCY_CPU,
    TIME_BREAKDOWN,
)
