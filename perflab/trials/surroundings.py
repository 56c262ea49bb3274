"""What is measured around a load, with the services idle: disk, core, and who else used CPU."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import Any

from perflab.host.placement import Placement
from perflab.host.speed import cpu_probe_ms
from perflab.sampling.meters import ProcessTable, core_times
from perflab.stacks.residents import Residents
from perflab.trials.summary import flush_columns


@dataclass
class Surroundings:
    """Probes right before and after the load."""

    flush_us: list[float] = field(default_factory=list)
    cpu_probe_ms: list[float] = field(default_factory=list)

    def probe(self, residents: Residents, placement: Placement, name: str) -> None:
        """Measure the speed of the services' core and the flush cost of the database's disk."""
        self.cpu_probe_ms.append(cpu_probe_ms(placement.services))
        node = residents.plans[name].database
        if not node:
            return
        instance = residents.instance(name, node)
        command = instance.launch.spec.probes.get("flush")
        if command:
            self.flush_us.extend(json.loads(instance.run(command))["flush_us"])

    def columns(self) -> dict[str, Any]:
        """Return what the trial's row holds of the probes."""
        mean_ms = sum(self.cpu_probe_ms) / len(self.cpu_probe_ms)
        return {**flush_columns(self.flush_us), "cpu_probe_ms": mean_ms}


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
