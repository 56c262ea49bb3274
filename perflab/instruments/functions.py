"""The functions of a service's own code in which it uses CPU, or waits, sampled during a load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from perflab.errors import ProfilerFailed
from perflab.host.meters import ProcessTable
from perflab.host.processes import may_not_be_read, program_name
from perflab.host.thread_accounts import accounts_of
from perflab.instruments.instrument import Load, Observation, OfNode, Scene, Sensor
from perflab.instruments.perf_profile import PerfProfile
from perflab.instruments.py_spy import PySpy
from perflab.instruments.py_spy_profiles import Function, own_functions, without_waiting
from perflab.recordings import Remark
from perflab.recordings.columns import CALLS, FUNCTIONS, TIMES

if TYPE_CHECKING:
    from perflab.instruments.node_profile import NodeProfile

RATE_HZ, SPARE_S = 400, 20.0
# Threads that wait are many, and each sample reads all.
WAITING_RATE_HZ = 50
NODE, PYTHON, JAVA = "node", "python", "java"


class _PythonProfile:
    def __init__(self, pids: Sequence[int], bound_s: float, labels: Mapping[str, str]) -> None:
        self._pids = pids
        self._folder = str(Path(f"/proc/{pids[0]}/cwd").readlink())
        self._profiler = PySpy(pids[0], RATE_HZ, bound_s, labels, children=True)

    def begin(self) -> None:
        self._profiler.begin()
        self._before = accounts_of(self._pids)

    def samples(self) -> tuple[Counter[Function], Counter[str]]:
        ran_ns = {
            thread: run_ns - self._before.get((pid, thread), (0, 0))[0]
            for (pid, thread), (run_ns, _) in accounts_of(self._pids).items()
        }
        profile = self._profiler.collect()
        chains = without_waiting(profile.chains)
        counts = dict(zip(chains["chain"], chains["samples"], strict=True))
        return own_functions(profile.text, self._folder, ran_ns=ran_ns), Counter(counts)


def sampler_of(
    pid: int, members: Sequence[int], bound_s: float, labels: Mapping[str, str]
) -> NodeProfile | PerfProfile | _PythonProfile:
    """Return what samples a service of these processes, whose first is ``pid``.

    ProfilerFailed where nothing does.
    """
    programs = {program_name(member) for member in members}
    if not any(programs) and any(map(may_not_be_read, members)):
        raise ProfilerFailed("its processes may not be read: run as root")
    if NODE in programs:
        # aiohttp, with which it speaks to Node, is slow to import.
        from perflab.instruments.node_profile import NodeProfile, node_process

        if node := node_process(members):
            return NodeProfile(node)
    if JAVA in programs:
        raise ProfilerFailed("nothing here reads the functions of a JVM")
    if is_python(members):
        return _PythonProfile([pid, *(other for other in members if other != pid)], bound_s, labels)
    return PerfProfile(members, bound_s, labels)


def is_python(members: Iterable[int]) -> bool:
    """Return whether one of these processes is a Python."""
    return any(program_name(member).startswith(PYTHON) for member in members)


class _Functions(Sensor["Functions"]):
    def __init__(self, settings: Functions, scene: Scene) -> None:
        super().__init__(settings, scene)
        self._tables: dict[str, pd.DataFrame] = {}
        self._problem = ""

    def begin(self) -> None:
        service = self.scene.instance(self.settings.node)
        members = service.meter().members(ProcessTable())
        bound_s = self.scene.workload.bound_s + SPARE_S
        # What cannot be profiled has its other accounts all the same.
        try:
            self._sampler = sampler_of(service.pid, members, bound_s, self.scene.labels)
            self._sampler.begin()
        except (ProfilerFailed, OSError) as error:
            self._problem = str(error)

    def end(self) -> None:
        if self._problem:
            return
        try:
            functions, chains = self._sampler.samples()
        except (ProfilerFailed, OSError) as error:
            self._problem = str(error)
            return
        self._tables = {
            "functions": pd.DataFrame(
                [(*name, samples) for name, samples in sorted(functions.items())],
                columns=[*FUNCTIONS],
            ),
            "calls": pd.DataFrame(sorted(chains.items()), columns=["chain", "samples"]),
        }

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        if self._problem:
            text = f"the functions of '{self.settings.node}' are not known: {self._problem}"
            return Observation(warnings=[Remark(code="functions.unknown", text=text)])
        return Observation(tables=self._tables)


class Functions(OfNode):
    """Fills ``functions``, samples by function of one's own code and library, and ``calls``.

    It reads Python (by py-spy), Node (by its own profiler) and compiled programs (by perf). A
    service that cannot be profiled gives a warning.
    """

    at_work: ClassVar = _Functions
    tables: ClassVar = {"functions": FUNCTIONS, "calls": CALLS}


class _Times(Sensor["FunctionTimes"]):
    def __init__(self, settings: FunctionTimes, scene: Scene) -> None:
        super().__init__(settings, scene)
        self._samples: Counter[Function] = Counter()
        self._profiler: PySpy | None = None

    def begin(self) -> None:
        service = self.scene.instance(self.settings.node)
        if not is_python(service.meter().members(ProcessTable())):
            return
        self._folder = str(Path(f"/proc/{service.pid}/cwd").readlink())
        profiler = PySpy(
            service.pid, WAITING_RATE_HZ, self.scene.workload.bound_s + SPARE_S, self.scene.labels,
            children=True, waiting=True,
        )  # fmt: skip
        with suppress(ProfilerFailed):
            profiler.begin()
            self._profiler = profiler

    def end(self) -> None:
        if self._profiler is not None:
            with suppress(ProfilerFailed):
                text = self._profiler.collect().text
                self._samples = own_functions(text, self._folder, waiting=True)

    def observe(self, load: Load) -> Observation:
        requests = int((load.result.requests["error"] == "").sum())
        if not requests:
            return Observation()
        rows = [
            (name, samples / WAITING_RATE_HZ * 1e3 / requests)
            for (name, _), samples in sorted(self._samples.items())
        ]
        return Observation(tables={"times": pd.DataFrame(rows, columns=["function", "time_ms"])})


class FunctionTimes(OfNode):
    """Fills ``times``: how long a request is in each function of a Python service's own code.

    Each time is that of the innermost function, whether its thread works or waits; under load it
    shows what requests queue for. What cannot be sampled has no rows.
    """

    at_work: ClassVar = _Times
    tables: ClassVar = {"times": TIMES}
