"""Who goes first on a core that several processes share."""

from __future__ import annotations

import contextlib
import os

# SCHED_RESET_ON_FORK: threads and children made later are ordinary ones.
RESET_ON_FORK = getattr(os, "SCHED_RESET_ON_FORK", 0x40000000)


def go_first() -> bool:
    """Give the calling thread real-time priority; return whether the system let it.

    Otherwise whatever else runs on its core (on some machines the kernel's own memory monitor,
    for milliseconds, twice a second) delays it, and the delay looks like the server's. Needs root
    or CAP_SYS_NICE. Source: sched(7), SCHED_FIFO.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | RESET_ON_FORK, os.sched_param(1))
    except (OSError, AttributeError):
        return False
    return True


def give_way() -> None:
    """Let everything else on its core go before the calling thread; there is no way back.

    Source: sched(7), SCHED_IDLE.
    """
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
