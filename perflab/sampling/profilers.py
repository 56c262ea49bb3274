"""Which profiler looks at which kind of service."""

from __future__ import annotations

from typing import Literal

from perflab.sampling import perf, py_spy
from perflab.sampling.profiler import Profiler

Kind = Literal["python", "native"]
PROFILERS: dict[Kind, type[Profiler]] = {"python": py_spy.PySpy, "native": perf.Perf}
CHECKS = {"python": py_spy.check_usable, "native": perf.check_usable}


def check_usable(kind: Kind) -> None:
    """Find out before anything is started whether services of a kind may be looked at here.

    Raises
    ------
    ProfilerFailed
        They may not; the message names what forbids it, and the way out.
    """
    CHECKS[kind]()
