"""Times of messages that listeners were given, each with what of it may be the client's own.

They begin at the instant for which the sending was planned, as those of requests do, and hold two
delays of the client's own: the sender took the message up late, and the listener's worker stood
still while it was under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from perflab.load.looks import Looks
from perflab.load.result import LoadResult
from perflab.load.times import Times, short_delays_ms

NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Sending:
    """When messages were taken up (ns), by the instant they were planned for, and who looked on.

    ``looks`` are those of each worker; without any, nobody knows of a stall.
    """

    at_ns: pd.Series[int]
    looks: Sequence[Looks] = ()

    @classmethod
    def of(cls, messages: pd.DataFrame, looks: Sequence[Looks] = ()) -> Sending:
        """Take it from messages as a recording has them.

        Of several that were planned for one instant the last counts.
        """
        sent = messages[(messages["direction"] == "sent") & (messages["planned_ns"] > 0)]
        return cls(sent.groupby("planned_ns")["at_ns"].max(), looks)

    def times(self, given: pd.DataFrame) -> Times:
        """Return the times of messages that were given to listeners (rows of a recording)."""
        parts = [self._of_worker(int(str(name)), own) for name, own in given.groupby("worker")]
        known, late, stalled = (
            np.concatenate(each) if parts else NONE
            for each in (zip(*parts, strict=True) if parts else (NONE,) * 3)
        )
        return Times(known, NONE, late, stalled, short_delays_ms(self.looks))

    def _of_worker(self, worker: int, given: pd.DataFrame) -> tuple[np.ndarray, ...]:
        planned, came = given["planned_ns"].to_numpy(), given["at_ns"].to_numpy()
        # What no script says it sent was not late.
        sent = given["planned_ns"].map(self.at_ns).fillna(given["planned_ns"]).to_numpy(np.int64)
        sent = np.clip(sent, planned, came)
        looks = self.looks[worker] if worker < len(self.looks) else Looks()
        late = sent - planned + looks.stood_still_ns(sent, came)
        return came - planned, late, looks.stood_still_ns(planned, came)


def received(result: LoadResult) -> Times:
    """Return the times of all messages of a load that have a kind and a planned instant."""
    messages = result.messages.rename(columns={"key": "planned_ns"})
    named = messages[(messages["planned_ns"] > 0) & (messages["kind"] != "")]
    return Sending.of(named, result.looks).times(named[named["direction"] == "received"])
