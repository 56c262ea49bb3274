"""Who else used CPU during a load: services that should rest, and other guests of the machine."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field

from perflab.sampling.meters import ProcessTable, core_times
from perflab.stacks.residents import Residents


@dataclass
class OthersCpu:
    """CPU that others use from now on; ``shares`` gives it as parts of a core so far."""

    residents: Residents
    treatment: str
    began_ns: int = field(default_factory=time.monotonic_ns)

    def __post_init__(self) -> None:
        self._idle_ns, self._steal_ns = cpu_of_idle(self.residents, self.treatment), steal_ns()

    def shares(self) -> dict[str, float]:
        """Return ``paused_cpu_share`` and ``steal_share`` since the begin (1.0 = one core)."""
        wall_ns = time.monotonic_ns() - self.began_ns
        idle_ns = cpu_of_idle(self.residents, self.treatment) - self._idle_ns
        return {
            "paused_cpu_share": idle_ns / wall_ns,
            "steal_share": (steal_ns() - self._steal_ns) / wall_ns,
        }


def cpu_of_idle(residents: Residents, name: str) -> int:
    """Return the CPU time that residents have used which a treatment does not need, in ns."""
    table = ProcessTable()
    total = 0
    for instance in residents.idle(name).values():
        with contextlib.suppress(OSError):
            reading = instance.meter().read(table)
            total += reading.cpu_ns if reading else 0
    return total


def steal_ns() -> int:
    """Return the time that other guests of the machine have taken from its cores."""
    return sum(times.steal_ns for times in core_times().values())
