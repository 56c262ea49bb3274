"""Probes of the machine before and after a load: the speed of its cores and its disk's flushes."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from perflab.host.processes import bound_to
from perflab.instruments.instrument import Instrument, Load, Observation, OfNode, Sensor
from perflab.load.workload import Workload
from perflab.stacks.plan import StackPlan
from perflab.stacks.spec import load_service

LOOPS = 20_000
REPEATS = 5
PROBE = "flush"


class _CpuSpeed(Sensor["CpuSpeed"]):
    def before(self) -> None:
        self._before_ms = cpu_probe_ms(self.scene.placement.services)

    def after(self) -> None:
        self._after_ms = cpu_probe_ms(self.scene.placement.services)

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        columns = {"cpu_probe_before_ms": self._before_ms, "cpu_probe_after_ms": self._after_ms}
        return Observation(columns)


class CpuSpeed(Instrument):
    """Measures ``cpu_probe_before_ms`` and ``cpu_probe_after_ms``, once each.

    Nothing is corrected for them: they show how far the machine's speed changed.
    """

    at_work: ClassVar = _CpuSpeed
    shares_time: ClassVar = True


def cpu_probe_ms(cores: Iterable[int]) -> float:
    """Return the median wall time (ms) of a fixed piece of work on these cores.

    The calling thread is bound to the cores meanwhile. Services on them must be idle: the probe
    measures the machine, not the contention.
    """
    with bound_to(cores):
        return statistics.median(_timed_ms() for _ in range(REPEATS))


def _timed_ms() -> float:
    begin, total = time.perf_counter_ns(), 0
    for number in range(LOOPS):
        total = (total * 31 + number) & 0xFFFFFFFF
    return (time.perf_counter_ns() - begin) / 1e6


class _FlushProbe(Sensor["FlushProbe"]):
    def before(self) -> None:
        instance = self.scene.instance(self.settings.node)
        command = instance.launch.spec.probes[PROBE]
        self.rows.extend(json.loads(instance.run(command))["flush_us"])

    def after(self) -> None:
        self.before()

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        return Observation(flush_columns(self.rows))


class FlushProbe(OfNode):
    """Runs the flush probe of a node's service: ``flush_us``, ``flush_p50_us``.

    The cost of a flush drifts by the hour; a result about durability says little without it.
    """

    at_work: ClassVar = _FlushProbe

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:
        """Return a problem where there is no such node, or its service has no probe."""
        if problems := super().obstacles(stack, workload):
            return problems
        service = stack.node(self.node).service
        if PROBE in load_service(service).probes:
            return []
        return [f"FlushProbe: service '{service}' has no probe '{PROBE}' in its service.toml"]


def flush_columns(flush_us: Sequence[float]) -> dict[str, Any]:
    """Return the flush times before and after the load and their median, in us."""
    p50_us = float(np.median(flush_us or [np.nan]))
    return {"flush_us": [*map(float, flush_us)], "flush_p50_us": p50_us}
