"""The responses of the inference service."""

from __future__ import annotations

from pathlib import Path

from perflab.recordings import Response
from perflab.recordings.responses import CPU, FLUSH, MEMORY, PHASES, PROFILE, REQUESTS
from perflab.recordings.typed_rows import rows_of

# Of the model; and shares that :mod:`perflab.analysis.computed_responses` computes.
OWN = rows_of(Path(__file__).with_suffix(".csv"), Response)
RESPONSES = (*REQUESTS, *PHASES, *CPU, *MEMORY, *FLUSH, *PROFILE, *OWN)
