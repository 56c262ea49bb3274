"""The numbers of the inference service's trials that can be compared."""

from __future__ import annotations

from perflab.recordings.responses import CPU, FLUSH, MEMORY, PHASES, PROFILE, REQUESTS

RESPONSES = (*REQUESTS, *PHASES, *CPU, *MEMORY, *FLUSH, *PROFILE)
