"""What is drawn of the runs of the inference service."""

from __future__ import annotations

from perflab.figures import FLUSH_COST, OF_REQUESTS, flame_views, latency_cpu_view

VIEWS = (*OF_REQUESTS, latency_cpu_view("inference", "postgres"), FLUSH_COST, flame_views)
