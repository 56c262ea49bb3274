"""The responses of the inference service."""

from __future__ import annotations

from perflab.recordings import Response
from perflab.recordings.responses import CPU, FLUSH, MEMORY, PHASES, PROFILE, REQUESTS

MODEL = (
    Response(
        name="prediction_cpu_us", title="CPU time of a prediction", unit="us",
        heading="CPU us/prediction", noun="CPU of a prediction", better="less", typical=True,
    ),
    Response(
        name="compile_s", title="time to compile the model", unit="s", heading="compile s",
        noun="compiling", better="less", typical=True,
    ),
)  # fmt: skip
# Computed from a trial's tables; see :mod:`perflab.analysis.computed_responses`.
SHARES = (
    Response(
        name="busy_share_of_cores", title="share of time in which the services' cores were busy",
        noun="busy time of the cores",
    ),
    Response(
        name="flush_share_of_waiting",
        title="share of the flush in waiting for the flush or for a core",
        noun="flush in waiting",
    ),
    Response(name="ms_per_answer", title="time between two answers", unit="ms", better="less"),
)  # fmt: skip
RESPONSES = (*REQUESTS, *PHASES, *CPU, *MEMORY, *FLUSH, *PROFILE, *MODEL, *SHARES)
