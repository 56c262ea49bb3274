"""A profiler beside the load of a trial."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from perflab.sampling.profiler import Profiler
from perflab.stacks.residents import Residents
from perflab.trials.plan import Treatment

PROFILER = "profiler"
SPARE_S = 60.0


@dataclass(frozen=True)
class Seen:
    """What a profiler saw, how often it was due to look, and what it says against itself."""

    stacks: pd.DataFrame
    looks: int
    warnings: tuple[str, ...]

    @classmethod
    def by(cls, profiler: Profiler) -> Seen:
        """End a profiler in order and take what it saw."""
        stacks = profiler.collect()
        return cls(stacks, profiler.looks, profiler.warnings)

    def columns(self) -> dict[str, Any]:
        """Return what the trial's row holds of it."""
        return {"profiler_looks": self.looks}


@contextlib.contextmanager
def looking_on(
    residents: Residents, treatment: Treatment, labels: Mapping[str, str]
) -> Iterator[Profiler | None]:
    """Attach the treatment's profiler, if it has one; it is ended whatever happens.

    Raises
    ------
    ProfilerFailed
        It cannot look at the service.
    """
    wanted = treatment.profiling
    if wanted is None:
        yield None
        return
    target = residents.instance(treatment.name, wanted.node).pid
    bound_s = treatment.workload.bound_s + SPARE_S
    with Profiler(target, wanted.rate_hz, bound_s, labels) as profiler:
        yield profiler
