"""What a summary says of the hosts that sent a load together."""

from __future__ import annotations

from typing import Any

from perflab.load.result import LoadResult


def hosts_shown(result: LoadResult) -> dict[str, Any]:
    """Return a row for every host under ``hosts``; nothing where one host sent all.

    A row has ``host``, ``first_worker`` and ``workers`` (their numbers in the record), the
    ``requests`` of the measure stage, and ``clock_offset_ms``: how far its CLOCK_MONOTONIC was
    ahead of the record's, by which its instants were shifted, and ``clock_error_ms``, by how much
    that may be wrong.
    """
    if not result.hosts:
        return {}
    return {
        "hosts": [
            {
                "host": host.name,
                "first_worker": host.first,
                "workers": host.workers,
                "requests": len(part.measured(lambda rows: rows["error"])),
                "clock_offset_ms": host.offset_ns / 1e6,
                "clock_error_ms": host.error_ns / 1e6,
            }
            for host, part in zip(result.hosts, result.parts, strict=True)
        ]
    }
