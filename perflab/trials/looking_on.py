"""A profiler beside the load of a trial."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from perflab.recordings import Remark
from perflab.sampling.profiler import Profiler
from perflab.stacks.residents import Residents
from perflab.trials.plan import Profiling, Treatment
from perflab.trials.watching import unseen, watched_columns, watched_samples

PROFILER = "profiler"
SPARE_S = 60.0


@dataclass(frozen=True)
class Seen:
    """What a profiler saw, how often it was due to look, and what it says against itself.

    ``watched`` counts the samples with a watched function, by name.
    """

    stacks: pd.DataFrame
    looks: int
    rate_hz: int
    watched: Mapping[str, int]
    warnings: tuple[Remark, ...]

    @classmethod
    def by(cls, profiler: Profiler, wanted: Profiling) -> Seen:
        """End a profiler in order and take what it saw."""
        stacks = profiler.collect()
        watched = watched_samples(stacks, wanted.watch)
        missing = unseen(watched, wanted.watch, int(stacks["samples"].sum()))
        doubts = (Remark(code="profiler.doubts", text=text) for text in profiler.warnings)
        warnings = (*doubts, *missing)
        return cls(stacks, profiler.looks, wanted.rate_hz, watched, warnings)

    def columns(self, messages: int) -> dict[str, Any]:
        """Return what the trial's row holds of it; ``messages`` were delivered in the trial."""
        samples = int(self.stacks["samples"].sum())
        return {
            "profiler_looks": self.looks,
            **watched_columns(self.watched, samples, self.rate_hz, messages),
        }


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
