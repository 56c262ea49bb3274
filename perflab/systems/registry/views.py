"""The views of the registry's runs."""

from __future__ import annotations

from perflab.figures import EFFECT
from perflab.systems.registry.figures.download_ladder import DOWNLOAD_LADDER
from perflab.systems.registry.figures.threads import COUNTS_OVER_TIME, THREAD_CURVE
from perflab.systems.registry.figures.waterfall import WATERFALL

VIEWS = (
    EFFECT,
    DOWNLOAD_LADDER,
    WATERFALL,
    COUNTS_OVER_TIME,
    THREAD_CURVE,
)
