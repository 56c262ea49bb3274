"""Responses in a reader's words: what more of it is called, and its unit."""

from __future__ import annotations

import re

NOUNS = (
    (r"throughput_rps", "throughput", "requests/s"),
    (r"messages_per_s", "messages delivered", "messages/s"),
    (r".*cpu_share_(.+)", r"CPU of \1", "cores"),
    (r"client_cpu_us_per_request", "client CPU per request", "us"),
    (r"cpu_us_per_message", "CPU per message", "us"),
    (r"profile_(.+)_us_per_message", r"time per message in \1", "us"),
    (r"phase_op_.*_ms", "time per operation", "us"),
    (r"phase_(.+)_(mean|p\d+)_ms", r"time in \1", "ms"),
    (r"(delivery|join|ping)_.*_ms", "latency", "ms"),
    (r"(mean|p\d+)_ms", "response time", "ms"),
    (r"memory_(.+)_bytes", r"memory of \1", "bytes"),
)


def noun(response: str) -> tuple[str, str]:
    """Return what a column of the trials measures, and in which unit (empty where not known)."""
    for pattern, words, unit in NOUNS:
        if match := re.fullmatch(pattern, response):
            return match.expand(words), unit
    return response.replace("_", " "), ""
