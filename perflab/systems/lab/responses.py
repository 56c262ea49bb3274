"""The responses of the lab's tests of itself."""

from __future__ import annotations

from perflab.recordings.responses import CLIENT, CPU, MEMORY, REQUESTS

RESPONSES = (*REQUESTS, *CLIENT, *CPU, *MEMORY)
