"""How fast the services' core is right before and after a load, by a short piece of work."""

from __future__ import annotations

from typing import ClassVar

from perflab.host.speed import cpu_probe_ms
from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene


class CpuSpeed(Instrument):
    """Measures ``cpu_probe_before_ms`` and ``cpu_probe_after_ms``, once each.

    Comparisons are corrected for the one before where that is shown to help. The one after is told
    and nothing more: what a treatment does to the machine is in it.
    """

    shares_time: ClassVar = True

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _CpuSpeed(scene.placement.services)


class _CpuSpeed(Look):
    def __init__(self, cores: tuple[int, ...]) -> None:
        self._cores = cores
        self._probe_ms: dict[str, float] = {}

    def before(self) -> None:
        """Probe."""
        self._probe_ms["cpu_probe_before_ms"] = cpu_probe_ms(self._cores)

    def after(self) -> None:
        """Probe again."""
        self._probe_ms["cpu_probe_after_ms"] = cpu_probe_ms(self._cores)

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return both."""
        return Observation({**self._probe_ms})
