"""What parts of a request are called, in sentences, tables and figures alike."""

from __future__ import annotations

# Parts that the service names itself (Server-Timing) are called so, unless they are here.
PARTS = {
    "request": "read and check request",
    "threadpool": "thread-pool wait",
    "pool": "connection-pool wait",
    "execute": "execute statement",
    "release": "give connection back",
    "answer": "back to event loop, answer",
    "queue and other": "accept queue, network, server",
    "unaccounted app": "rest of the application",
}


def part_words(part: str) -> str:
    """Return what a part of :func:`perflab.analysis.trials.decomposition.decompose` is called."""
    return PARTS.get(part, part)
