"""An instrument with its own table, response and reason: the bodies that the service took in."""

from typing import ClassVar

import pandas as pd

from perflab.instruments import Instrument, Load, Observation, Sensor
from perflab.recordings import Reason


class _Taken(Sensor["Taken"]):
    def after(self) -> None:
        """Read the service's counts."""
        counts = self.scene.counts(self.settings.node)
        self.taken = pd.DataFrame(counts["taken"], columns=["at_ns", "bytes"])

    def observe(self, load: Load) -> Observation:
        """Return the rate over the measured stage."""
        begin, end = load.result.begin_ns, load.result.end_ns
        measured = self.taken[self.taken["at_ns"].between(begin, end)]
        rate = float(measured["bytes"].sum()) / (end - begin) * 1e9
        reasons = []
        if (largest := int(self.taken["bytes"].max())) > self.settings.most_bytes:
            text = f"a body of {largest} bytes is above {self.settings.most_bytes}"
            reasons = [Reason(code="tally.too_large", side="client", text=text)]
        return Observation({"taken_bytes_per_s": rate}, {"taken": self.taken}, reasons)


class Taken(Instrument):
    """Reads the bodies that were taken in, and refuses bodies above a size."""

    at_work: ClassVar = _Taken
    tables: ClassVar = {"taken": {"at_ns": "int64", "bytes": "int64"}}

    node: str
    most_bytes: int
