"""The header ``Server-Timing``: the inner phases that a service reports."""

from __future__ import annotations

MAX_PHASES = 64
LONGEST_PHASE_MS = 1e9


def parse_server_timing(header: str) -> dict[str, float]:
    """Read a ``Server-Timing`` header: metric name to duration in ms.

    Source: W3C Server Timing, the header field. Left out are entries without ``dur``, names beyond
    printable ASCII, durations that are none (negative, infinite, above 11 days), and all phases
    after the first 64.
    """
    phases: dict[str, float] = {}
    for entry in header.split(","):
        if len(phases) == MAX_PHASES:
            break
        name, *parameters = (part.strip() for part in entry.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "dur" and name and name.isascii() and name.isprintable():
                try:
                    duration_ms = float(value.strip().strip('"'))
                except ValueError:
                    continue
                if 0 <= duration_ms <= LONGEST_PHASE_MS:
                    phases[name] = duration_ms
    return phases
