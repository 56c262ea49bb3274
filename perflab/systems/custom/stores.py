"""Instruments of stores: how many rows a load leaves, and what the CPU of shared ones is."""

from __future__ import annotations

import math
from typing import ClassVar

from perflab.errors import StackError
from perflab.host.meters import ProcessTreeMeter
from perflab.host.processes import program_name
from perflab.instruments import Instrument, Load, Observation, Sensor
from perflab.recordings import Remark
from perflab.recordings.responses import OF_ALL, STORE_ROWS
from perflab.stacks.listening import owners

# They listen for a server in a container, or on another machine: its CPU is not theirs.
FORWARDERS = {
    "conmon", "docker-proxy", "passt", "pasta", "rootlesskit", "rootlessport", "slirp4netns", "ssh",
}  # fmt: skip


class _StoreRows(Sensor["StoreRows"]):
    def after(self) -> None:
        self._rows = 0.0
        for instance in self.scene.services.values():
            store = instance.launch.spec.store
            if store and store.count:
                try:
                    told = instance.run(store.count, interrupted=self.scene.interrupted)
                    self._rows += sum(map(int, told.split()))
                except (StackError, ValueError):
                    # Whether the store still lives is asked elsewhere.
                    self._rows = math.nan

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        return Observation({STORE_ROWS: self._rows})


class StoreRows(Instrument):
    """Counts, once after the load, what is in the stores of a variant, as they tell it."""

    at_work: ClassVar = _StoreRows
    shares_time: ClassVar = True


def _listeners(address: str) -> list[int]:
    """Return the processes that serve at an address; none where they are not known here."""
    port = address.rpartition(":")[2]
    if not port.isdecimal():
        return []
    pids = filter(None, owners({int(port)}))
    # passt.avx2 is one of its builds.
    return sorted(pid for pid in pids if program_name(pid).partition(".")[0] not in FORWARDERS)


class _SharedStores(Sensor["SharedStores"]):
    def before(self) -> None:
        self._owners = {address: _listeners(address) for address in self.settings.addresses}

    def meters(self) -> dict[str, ProcessTreeMeter]:
        return {
            f"{OF_ALL}{address}": ProcessTreeMeter(*pids)
            for address, pids in self._owners.items()
            if pids
        }

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        texts = [
            f"who listens at {address} is not known here: its CPU counts as that of others"
            for address, pids in self._owners.items()
            if not pids
        ]
        return Observation(warnings=[Remark(code="store.unknown", text=text) for text in texts])


class SharedStores(Instrument):
    """Samples the CPU of those who listen at addresses that variants may use (``also``)."""

    at_work: ClassVar = _SharedStores
    shares_time: ClassVar = True

    addresses: tuple[str, ...]
