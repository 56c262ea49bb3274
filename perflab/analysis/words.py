"""What parts of a request and responses are called, in sentences, tables and figures alike."""

from __future__ import annotations

import re

# Parts that the service names itself (Server-Timing) are called so, unless they are here.
PARTS = {
    "threadpool": "thread-pool wait",
    "pool": "connection-pool wait",
    "execute": "execute statement",
    "queue and other": "accept queue, network, server",
    "unaccounted app": "rest of the application",
}
RESPONSES = {
    "throughput_rps": "throughput",
    "mean_ms": "mean response time",
    "messages_per_s": "messages per second",
    "cpu_us_per_message": "CPU time per message",
    "client_cpu_us_per_request": "the client's CPU time per request",
}
PATTERNS = (
    (r"p(\d+)_ms", r"p\1 of the response time"),
    (r"delivery_p(\d+)_ms", r"p\1 of the delivery latency"),
    (r"join_p(\d+)_ms", r"p\1 of the delivery latency while users join"),
    (r"ping_p(\d+)_ms", r"p\1 of the ping"),
    (r"join_cpu_share_(\w+)", r"CPU cores that \1 uses while users join"),
    (r"plateau_cpu_share_(\w+)", r"CPU cores that \1 uses while all users act"),
    (r"cpu_share_(\w+)", r"CPU cores that \1 uses"),
    (r"phase_(\w+)_p50_ms", r"median time of \1"),
    (r"profile_(\w+)_us_per_message", r"time of \1 per message (profile)"),
)


def part_words(part: str) -> str:
    """Return what a part of :func:`perflab.analysis.decomposition.decompose` is called."""
    return PARTS.get(part, part)


def response_words(response: str) -> str:
    """Return what a response is called: a column of the trials, in words without its unit."""
    if response in RESPONSES:
        return RESPONSES[response]
    for pattern, words in PATTERNS:
        if re.fullmatch(pattern, response):
            return re.sub(pattern, words, response)
    return response.replace("_", " ")
