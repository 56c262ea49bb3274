"""The functions of a service's own code in which it uses CPU, sampled during a load."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pandas as pd

from perflab.errors import ProfilerFailed
from perflab.host.meters import ProcessTable
from perflab.instruments.instrument import Load, Look, Observation, OfNode, Scene
from perflab.instruments.node_profile import NodeProfile, functions_of, node_process
from perflab.instruments.py_spy import PySpy, own_functions
from perflab.recordings import Remark
from perflab.recordings.columns import FUNCTIONS, described_schema

RATE_HZ, SPARE_S = 400, 20.0


class _Functions(Look["Functions"]):
    def __init__(self, settings: Functions, scene: Scene) -> None:
        super().__init__(settings, scene)
        service = scene.instance(settings.node)
        self._pid = service.pid
        self._node = node_process(service.meter().members(ProcessTable()))
        self._profiler: PySpy | NodeProfile
        if self._node:
            self._pid, self._profiler = self._node.pid, NodeProfile(self._node)
        else:
            bound_s = scene.workload.bound_s + SPARE_S
            self._profiler = PySpy(self._pid, RATE_HZ, bound_s, scene.labels, children=True)
        self._problem = ""
        self._table = pd.DataFrame()

    def begin(self) -> None:
        # What cannot be profiled has its other accounts all the same.
        try:
            self._profiler.begin()
        except ProfilerFailed as error:
            self._problem = str(error)

    def end(self) -> None:
        if self._problem:
            return
        try:
            folder = str(Path(f"/proc/{self._pid}/cwd").readlink())
            if isinstance(self._profiler, NodeProfile):
                counts = functions_of(self._profiler.collect(), folder)
            else:
                counts = own_functions(self._profiler.collect().text, folder)
            self._table = pd.DataFrame(sorted(counts.items()), columns=["function", "samples"])
        except (ProfilerFailed, OSError) as error:
            self._problem = str(error)

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        if self._problem:
            text = f"the functions of '{self.settings.node}' are not known: {self._problem}"
            return Observation(warnings=[Remark(code="functions.unknown", text=text)])
        return Observation(tables={"functions": self._table})


class Functions(OfNode):
    """Fills the table ``functions``: samples by function, as :func:`own_functions` names it.

    It reads Python (by py-spy) and Node (by its own profiler). A service that cannot be profiled
    gives a warning.
    """

    at_work: ClassVar = _Functions
    tables: ClassVar = {"functions": described_schema(FUNCTIONS)}
