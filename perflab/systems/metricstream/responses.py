"""The responses of MetricStream; the lab vouches for none that its naive client tells."""

from __future__ import annotations

from perflab.recordings.responses import CLIENT, CPU, MEMORY, PHASES, PROFILE, REQUESTS, beside

RESPONSES = (*beside(__file__), *REQUESTS, *PHASES, *CPU, *CLIENT, *MEMORY, *PROFILE)
