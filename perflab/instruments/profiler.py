"""A profiler beside the load of a trial, and the shares and times of watched functions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd
from pydantic import Field

from perflab.host.meters import Meter, ProcessTreeMeter
from perflab.instruments.instrument import Load, Observation, OfNode, Scene, Sensor
from perflab.instruments.py_spy import PySpy, check_usable
from perflab.recordings import Remark
from perflab.recordings.columns import CALLS
from perflab.stacks.plan import StackPlan

PROFILER = "profiler"
SPARE_S = 60.0


class _Profile(Sensor["Profiler"]):
    def __init__(self, settings: Profiler, scene: Scene) -> None:
        super().__init__(settings, scene)
        bound_s = scene.workload.bound_s + SPARE_S
        pid = scene.instance(settings.node).pid
        self._profiler = PySpy(pid, settings.rate_hz, bound_s, scene.labels)

    def begin(self) -> None:
        self._profiler.begin()

    def meters(self) -> Mapping[str, Meter]:
        return {PROFILER: ProcessTreeMeter(self._profiler.pid)}

    def end(self) -> None:
        self._profile = self._profiler.collect()

    def observe(self, load: Load) -> Observation:
        settings, chains = self.settings, self._profile.chains
        samples = int(chains["samples"].sum())
        counts = watched_samples(chains, settings.watch)
        messages = int((load.result.messages["kind"] == settings.per).sum())
        columns: dict[str, Any] = {
            "profiler_node": settings.node,
            "profiler_looks": self._profile.looks,
            **watched_columns(counts, samples, settings.rate_hz, messages),
        }
        missing = unseen(counts, settings.watch, samples)
        doubts = [Remark(code="profiler.doubts", text=text) for text in self._profile.warnings]
        return Observation(columns, {"calls": chains}, warnings=(*doubts, *missing))


class Profiler(OfNode):
    """Samples a Python node's call chains during the load, ``rate_hz`` times a second.

    It fills the table ``calls``.

    ``watch`` names functions whose share goes into the trial's row (:func:`watched_columns`): a
    short name, and a regular expression that is searched for in frames as the profiler writes them,
    ``Pool.take (service/pool.py)``. Their time is given per message of the kind ``per``.
    """

    at_work: ClassVar = _Profile
    tables: ClassVar = {"calls": CALLS}

    rate_hz: int = Field(ge=1, le=1000)
    watch: Mapping[str, str] = Field(default_factory=dict)
    per: str

    def check_usable(self, stack: StackPlan) -> None:  # noqa: ARG002
        """Raise ProfilerFailed where py-spy may not read processes here."""
        check_usable()


def watched_samples(chains: pd.DataFrame, watch: Mapping[str, str]) -> dict[str, int]:
    """Return the number of samples that have a watched frame anywhere in their chain, by name.

    ``watch`` has a regular expression by name, which is searched for in each frame of a chain. A
    sample counts once, however many of its frames match: recursion adds no time.
    """
    patterns = {name: re.compile(pattern) for name, pattern in watch.items()}
    counts = dict.fromkeys(watch, 0)
    for chain, samples in zip(chains["chain"], chains["samples"], strict=True):
        frames = chain.split(";")
        for name, pattern in patterns.items():
            if any(map(pattern.search, frames)):
                counts[name] += int(samples)
    return counts


def watched_columns(
    counts: Mapping[str, int], samples: int, rate_hz: float, messages: int
) -> dict[str, float]:
    """Return a row's columns of watched functions; ``counts`` has their samples.

    The columns are ``profile_<name>_share`` of all samples and ``profile_<name>_us_per_message``,
    where a sample stands for 1 / ``rate_hz`` seconds; NaN without samples, or without messages.
    """
    row: dict[str, float] = {}
    for name, count in counts.items():
        row[f"profile_{name}_share"] = count / samples if samples else math.nan
        time_us = count / rate_hz * 1e6
        row[f"profile_{name}_us_per_message"] = time_us / messages if messages else math.nan
    return row


def unseen(counts: Mapping[str, int], watch: Mapping[str, str], samples: int) -> tuple[Remark, ...]:
    """Return a warning for every watched function that is in no sample."""
    return tuple(
        Remark(
            code="profiler.unseen",
            text=f"the watched function '{name}' is in none of {samples} samples: either it takes "
            "too little time (raise rate_hz, or make trials longer), or no function matches "
            f"'{watch[name]}'",
        )
        for name, count in counts.items()
        if not count
    )
