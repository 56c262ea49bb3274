"""The responses of the inference service."""

from __future__ import annotations

from perflab.recordings.responses import CPU, FLUSH, MEMORY, PHASES, PROFILE, REQUESTS, beside

# Of the model; and shares that :mod:`perflab.analysis.computed_responses` computes.
RESPONSES = (*REQUESTS, *PHASES, *CPU, *MEMORY, *FLUSH, *PROFILE, *beside(__file__))
