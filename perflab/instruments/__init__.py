"""Instruments: they measure in trials beside the load. Systems add their own."""

from perflab.instruments.accounts import Accounts
from perflab.instruments.functions import Functions, FunctionTimes
from perflab.instruments.instrument import Instrument, Load, Observation, Scene, Sensor
from perflab.instruments.kernel import AcceptQueues, DatabaseWaits, SchedulerAccounts
from perflab.instruments.other_load import OtherLoad
from perflab.instruments.probes import CpuSpeed, FlushProbe
from perflab.instruments.profiler import Profiler
from perflab.instruments.requests import Chunks, Requests, ServerCount
from perflab.instruments.users_held import UsersHeld

# The instruments of every trial, unless its treatment has others.
STANDARD: tuple[Instrument, ...] = (
    Requests(), CpuSpeed(), SchedulerAccounts(), AcceptQueues(),
)  # fmt: skip


__all__ = [
    "STANDARD", "AcceptQueues", "Accounts", "Chunks", "CpuSpeed", "DatabaseWaits", "FlushProbe",
    "FunctionTimes", "Functions", "Instrument", "Load", "Observation", "OtherLoad", "Profiler",
    "Requests", "Scene", "SchedulerAccounts", "Sensor", "ServerCount", "UsersHeld",
]  # fmt: skip
