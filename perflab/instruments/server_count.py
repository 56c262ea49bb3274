"""The services' own count of what a load left behind, against what the client was told."""

from __future__ import annotations

from perflab.instruments.instrument import Instrument, Load, Look, Observation, Scene
from perflab.recordings import Reason


class ServerCount(Instrument):
    """Asks the stack for its count, where it has one, and refuses a trial that does not agree.

    Every request that succeeded, of the warm-up too, must have left one behind.
    """

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _ServerCount(scene)


class _ServerCount(Look):
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._counted: int | None = None

    def after(self) -> None:
        """Ask the services."""
        self._counted = self._scene.residents.count(self._scene.treatment)

    def observe(self, load: Load) -> Observation:
        """Return ``server_count``, where there is one."""
        if self._counted is None:
            return Observation()
        told = int((load.result.requests["error"] == "").sum())
        columns = {"server_count": self._counted}
        if self._counted == told:
            return Observation(columns)
        text = f"the server counted {self._counted} writes, the client was told of {told}"
        return Observation(columns, reasons=[Reason(code="server.count", text=text)])
