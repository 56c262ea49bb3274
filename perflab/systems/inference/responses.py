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
RESPONSES = (*REQUESTS, *PHASES, *CPU, *MEMORY, *FLUSH, *PROFILE, *MODEL)
