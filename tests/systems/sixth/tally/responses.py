"""The responses of tally."""

from perflab.recordings import Response
from perflab.recordings.responses import CPU, REQUESTS

RESPONSES = (
    Response(
        name="taken_bytes_per_s", title="bytes taken in per second", unit="bytes/s",
        heading="taken B/s", noun="bytes taken in", better="more", typical=True,
    ),
    *REQUESTS,
    *CPU,
)  # fmt: skip
