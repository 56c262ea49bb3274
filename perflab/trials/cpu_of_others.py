"""The CPU taken beside a treatment: by idle services, and by other guests of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable

from perflab.host.meters import ProcessTable, core_times
from perflab.stacks.backend import used_by
from perflab.stacks.residents import Residents


def others_cpu(residents: Residents, treatment: str) -> Callable[[], dict[str, float]]:
    """Return a function that gives ``idle_cpu_share`` and ``steal_share`` since this call.

    1.0 is one core.
    """

    def idle_ns() -> int:
        return used_by(residents.idle(treatment).values(), ProcessTable()).cpu_ns

    began_ns = time.monotonic_ns()
    before_ns, stolen_ns = idle_ns(), steal_ns()

    def shares() -> dict[str, float]:
        wall_ns = time.monotonic_ns() - began_ns
        stolen = (steal_ns() - stolen_ns) / wall_ns
        return {"idle_cpu_share": (idle_ns() - before_ns) / wall_ns, "steal_share": stolen}

    return shares


def steal_ns() -> int:
    """Return the time (ns) that other guests of the machine have taken from its cores."""
    return sum(times.steal_ns for times in core_times().values())
