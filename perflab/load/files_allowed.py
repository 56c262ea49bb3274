"""How many files this process may open."""

from __future__ import annotations

import resource

SPARE_FILES = 64


def allow_files(wanted: int) -> int:
    """Raise this process's limit on open files if need be; return how many more it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + SPARE_FILES
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        except (OSError, ValueError):
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(1, soft - SPARE_FILES)
