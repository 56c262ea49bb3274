"""What a disk flush costs right before and after a load, where a node's files lie."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene, no_node
from perflab.load.workload import Workload
from perflab.stacks.plan import StackPlan
from perflab.stacks.spec import load_service

PROBE = "flush"


class FlushProbe(Instrument):
    """Runs the flush probe of a node's service: ``flush_us``, ``flush_p50_us``, ``flush_p99_us``.

    The cost of a flush drifts by the hour; a result about durability says little without it.
    """

    node: str

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _FlushProbe(self.node, scene)

    def obstacles(self, stack: StackPlan, workload: Workload) -> Iterable[str]:  # noqa: ARG002
        """Return that there is no such node, or that its service has no probe."""
        if problems := no_node("flush probe", self.node, stack):
            return problems
        service = stack.node(self.node).service
        if PROBE in load_service(service).probes:
            return []
        return [f"flush probe: service '{service}' has no probe '{PROBE}' in its service.toml"]


class _FlushProbe(Look):
    def __init__(self, node: str, scene: Scene) -> None:
        self._node = node
        self._scene = scene
        self._flush_us: list[float] = []

    def before(self) -> None:
        """Probe."""
        instance = self._scene.instance(self._node)
        command = instance.launch.spec.probes[PROBE]
        self._flush_us.extend(json.loads(instance.run(command))["flush_us"])

    def after(self) -> None:
        """Probe again."""
        self.before()

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return every flush and the percentiles."""
        return Observation(flush_columns(self._flush_us))


def flush_columns(flush_us: Sequence[float]) -> dict[str, Any]:
    """Return the measured flushes around the trial and their percentiles, in us."""
    if not flush_us:
        nothing = float("nan")
        return {"flush_us": [], "flush_p50_us": nothing, "flush_p99_us": nothing}
    return {
        "flush_us": [float(value) for value in flush_us],
        "flush_p50_us": float(np.percentile(flush_us, 50)),
        "flush_p99_us": float(np.percentile(flush_us, 99)),
    }
