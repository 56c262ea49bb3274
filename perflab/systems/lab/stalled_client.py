"""A planted fault: the load's workers are stopped during a trial, as a hypervisor does it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Sequence

from pydantic import Field

from perflab.instruments import Instrument, Load, Look, Observation, Scene

JOIN_S = 5.0


class StalledClient(Instrument):
    """Stops the workers for ``stall_ms``, lets them run for ``pause_ms``, and repeats that."""

    stall_ms: float = Field(gt=0, le=1000)
    pause_ms: float = Field(gt=0, le=60_000)

    def look(self, scene: Scene) -> Look:
        """Return the look at one trial."""
        return _Stalling(self, scene.client_pids)


class _Stalling(Look):
    def __init__(self, instrument: StalledClient, pids: Sequence[int]) -> None:
        self._instrument = instrument
        self._pids = pids
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._act, daemon=True)
        self._count = 0

    def begin(self) -> None:
        """Start with a pause."""
        self._thread.start()

    def end(self) -> None:
        """Stop, and leave the workers running."""
        self._over.set()
        self._thread.join(JOIN_S)

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return ``planted_stalls``, how often the workers were stopped."""
        return Observation({"planted_stalls": self._count})

    def _act(self) -> None:
        while not self._over.wait(self._instrument.pause_ms / 1e3):
            self._signal(signal.SIGSTOP)
            try:
                self._over.wait(self._instrument.stall_ms / 1e3)
            finally:
                self._signal(signal.SIGCONT)
            self._count += 1

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
