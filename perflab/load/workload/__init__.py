"""The workload of a load: requests, how they arrive, in which stages."""

from perflab.load.workload.arrivals import Arrivals, Burst, ClosedLoop, OpenLoop, Scripted, Stage
from perflab.load.workload.request import Connections, Request, Reuse
from perflab.load.workload.workload import Objective, StopRules, Workload

__all__ = [
    "Arrivals", "Burst", "ClosedLoop", "Connections", "Objective", "OpenLoop", "Request", "Reuse",
    "Scripted", "Stage", "StopRules", "Workload",
]  # fmt: skip
