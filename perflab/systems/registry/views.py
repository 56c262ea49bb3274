"""The views of the registry's runs."""

from __future__ import annotations

from perflab.figures import EFFECT, LATENCY_CPU
from perflab.systems.registry.counts_over_time import COUNTS_OVER_TIME
from perflab.systems.registry.download_ladder import DOWNLOAD_LADDER
from perflab.systems.registry.waterfall import WATERFALL

VIEWS = (EFFECT, DOWNLOAD_LADDER, WATERFALL, COUNTS_OVER_TIME, LATENCY_CPU)
