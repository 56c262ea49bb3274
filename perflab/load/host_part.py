"""One host's part of a load that several hosts sent together."""

from __future__ import annotations

from dataclasses import dataclass

from perflab.load.machine_counts import MachineUse
from perflab.load.workload import ClosedLoop, Workload
from perflab.recordings.reasons import Reason

# What the common start and the throughput of all hosts together may be off by.
MAX_CLOCK_ERROR_MS = 5.0
MAX_LATE_START_MS = 5.0


@dataclass(frozen=True)
class HostPart:
    """Which part of a load a host sent, and how well its clock was known.

    Attributes
    ----------
    first, workers : int
        The number of its first load worker among those of all hosts, and how many it has.
    offset_ns, error_ns : int
        How far its CLOCK_MONOTONIC is ahead of the record's, and by how much that may be wrong.
    late_ns : int
        How long after the common start the last of its workers began.
    """

    name: str
    first: int
    workers: int
    offset_ns: int
    error_ns: int
    late_ns: int
    machine: MachineUse

    def reasons(self) -> list[Reason]:
        """Return what its clock says against the numbers of all hosts together.

        Response times are taken on one host's clock each and do not depend on the others'; the
        common start and the window of throughput do.
        """
        found = []
        if self.error_ns > MAX_CLOCK_ERROR_MS * 1e6:
            text = f"{self.name}: its clock is known to {self.error_ns / 1e6:.1f} ms only, more "
            text += f"than {MAX_CLOCK_ERROR_MS:g} ms: when it sent beside the others is not known"
            found.append(Reason(code="host.clock", text=text))
        if self.late_ns > MAX_LATE_START_MS * 1e6:
            text = f"{self.name}: began {self.late_ns / 1e6:.1f} ms after the common start"
            found.append(Reason(code="host.late_start", side="client", text=text))
        return found


def own_workload(workload: Workload, first: int, workers: int, of: int) -> Workload:
    """Return the workload by which a host's part is judged: with the users that it had.

    Parameters
    ----------
    first, workers, of : int
        The number of its first worker, how many it has, and how many all hosts have.
    """
    arrivals = workload.arrivals
    if not isinstance(arrivals, ClosedLoop):
        return workload
    own = range(first, first + workers)
    users = sum(len(range(number, arrivals.users, of)) for number in own)
    own_arrivals = arrivals.model_copy(update={"users": users})
    return workload.model_copy(update={"arrivals": own_arrivals})
