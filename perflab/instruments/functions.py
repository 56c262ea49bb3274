"""The functions of a service's own code in which it uses CPU, sampled during a load."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pandas as pd

from perflab.errors import ProfilerFailed
from perflab.instruments.instrument import Load, Look, Observation, OfNode, Scene
from perflab.instruments.py_spy import PySpy, own_functions
from perflab.recordings import Remark
from perflab.recordings.columns import FUNCTIONS, described_schema

RATE_HZ, SPARE_S = 400, 20.0


class _Functions(Look["Functions"]):
    def __init__(self, settings: Functions, scene: Scene) -> None:
        super().__init__(settings, scene)
        self._pid = scene.instance(settings.node).pid
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
            profile = self._profiler.collect()
            counts = own_functions(profile.text, str(Path(f"/proc/{self._pid}/cwd").readlink()))
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

    A service that cannot be profiled gives a warning.
    """

    at_work: ClassVar = _Functions
    tables: ClassVar = {"functions": described_schema(FUNCTIONS)}
