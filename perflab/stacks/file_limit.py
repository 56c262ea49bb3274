"""A limit on the descriptors that a service's processes may have open, as plain processes.

It is set in the process itself before the service's program is there: the lab's own limit stays,
and nothing of the service ever ran without it.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence

from perflab.errors import ServiceFailed

# POSIX: both limits, soft and hard, so that the service cannot widen it.
SET = 'ulimit -n "$0" && exec "$@"'


def keeping(command: Sequence[str], files: int) -> list[str]:
    """Return a command that limits itself and then becomes the given one."""
    return ["/bin/sh", "-c", SET, str(files), *command]


def check(service: str, files: int, is_root: bool) -> None:
    """Refuse a limit that the service's user may not have.

    Raises
    ------
    ServiceFailed
        It is above the hard limit, which only root may raise.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if is_root or hard == resource.RLIM_INFINITY or files <= hard:
        return
    raise ServiceFailed(
        service,
        f"it is to have {files} descriptors, and this user may have {hard}: lower its setting, "
        "raise the limit (ulimit -Hn, /etc/security/limits.conf), or --backend docker",
    )
