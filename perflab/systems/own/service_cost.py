"""What a request costs the service, whatever the service is called, and how many failed."""

from __future__ import annotations

from typing import ClassVar

from perflab.instruments import Instrument, Load, Look, Observation, Scene
from perflab.trials.summary import OnTime, cpu_us_per_success, largest_memory


class ServiceCost(Instrument):
    """CPU time per measured request and largest memory; nothing where the lab started no service.

    ``service_cpu_us_per_request`` counts all CPU of the service over the measured stage, and the
    requests that succeeded in it; ``failure_share`` is of measured requests.
    """

    shares_time: ClassVar = True

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _ServiceCost(scene)


class _ServiceCost(Look):
    def __init__(self, scene: Scene) -> None:
        self._names = list(scene.residents.active(scene.treatment))

    def observe(self, load: Load) -> Observation:
        """Return the columns that there are."""
        result = load.result
        measured = result.requests[result.requests["stage"] == "measure"]
        failed = int((measured["error"] != "").sum())
        columns = {"failure_share": failed / max(1, len(measured))}
        when = OnTime.of(result)
        for name in self._names:
            own = load.samples[load.samples["service"] == name]
            columns["service_cpu_us_per_request"] = cpu_us_per_success(own, result)
            columns["service_memory_bytes"] = largest_memory(own, when.begin_ns, when.end_ns)
        return Observation(columns)
