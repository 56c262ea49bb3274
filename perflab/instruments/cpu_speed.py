"""How fast the services' core is right before and after a load, by a short piece of work."""

from __future__ import annotations

from perflab.host.speed import cpu_probe_ms
from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene


class CpuSpeed(Instrument):
    """Measures ``cpu_probe_ms``: comparisons are corrected for it where that is shown to help."""

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _CpuSpeed(scene.placement.services)


class _CpuSpeed(Look):
    def __init__(self, cores: tuple[int, ...]) -> None:
        self._cores = cores
        self._probes_ms: list[float] = []

    def before(self) -> None:
        """Probe."""
        self._probes_ms.append(cpu_probe_ms(self._cores))

    def after(self) -> None:
        """Probe again."""
        self.before()

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return the mean of the two."""
        return Observation({"cpu_probe_ms": sum(self._probes_ms) / len(self._probes_ms)})
