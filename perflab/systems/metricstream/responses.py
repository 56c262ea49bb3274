"""The responses of MetricStream; the lab vouches for none that its naive client tells."""

from __future__ import annotations

from pathlib import Path

from perflab.recordings import Response
from perflab.recordings.responses import CLIENT, CPU, MEMORY, PHASES, PROFILE, REQUESTS
from perflab.recordings.typed_rows import rows_of

OWN = rows_of(Path(__file__).with_suffix(".csv"), Response)
RESPONSES = (*OWN, *REQUESTS, *PHASES, *CPU, *CLIENT, *MEMORY, *PROFILE)
