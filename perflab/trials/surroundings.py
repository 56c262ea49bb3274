"""CPU that others used during a load, and looks whose errors name their instrument."""

from __future__ import annotations

import contextlib
import inspect
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from perflab.errors import InstrumentFailed, LoadError, RunInterrupted, StackError, WrongAnswer
from perflab.host.meters import Meter, ProcessTable, Reading, core_times
from perflab.instruments import Instrument, Load, Look, Observation, Scene
from perflab.instruments.instrument import kind_of
from perflab.paths import system_folder
from perflab.stacks.residents import Residents


def others_cpu(residents: Residents, treatment: str) -> Callable[[], dict[str, float]]:
    """Return a function that gives ``paused_cpu_share`` and ``steal_share`` since this call.

    1.0 is one core.
    """
    began_ns = time.monotonic_ns()
    before_ns, stolen_ns = cpu_of_idle(residents, treatment), steal_ns()

    def shares() -> dict[str, float]:
        wall_ns = time.monotonic_ns() - began_ns
        idle_ns = cpu_of_idle(residents, treatment) - before_ns
        stolen = (steal_ns() - stolen_ns) / wall_ns
        return {"paused_cpu_share": idle_ns / wall_ns, "steal_share": stolen}

    return shares


def cpu_of_idle(residents: Residents, name: str) -> int:
    """Return the CPU time (ns) of the residents that a treatment does not use."""
    table = ProcessTable()
    total = 0
    for instance in residents.idle(name).values():
        with contextlib.suppress(OSError):
            reading = instance.meter().read(table)
            total += reading.cpu_ns if reading else 0
    return total


def steal_ns() -> int:
    """Return the time (ns) that other guests of the machine have taken from its cores."""
    return sum(times.steal_ns for times in core_times().values())


LONGEST_TEXT = 300
# With these errors the lab fails a trial or ends a run; an instrument may raise them, too.
_PASSED_ON = (StackError, LoadError, WrongAnswer, RunInterrupted)


class GuardedLook(Look):
    """The look of an instrument, whose own errors become :class:`InstrumentFailed`.

    The error names instrument, step, exception and line. Making the look is a step, too.
    """

    def __init__(self, instrument: Instrument, scene: Scene) -> None:
        self._instrument = instrument
        self._meters: dict[str, _GuardedMeter] = {}
        with self._guarded("look"):
            self._look = instrument.look(scene)

    def before(self) -> None:
        """Measure before the load."""
        with self._guarded("before"):
            self._look.before()

    def begin(self) -> None:
        """Begin to measure."""
        with self._guarded("begin"):
            self._look.begin()

    def meters(self) -> Mapping[str, Meter]:
        """Return the look's meters; :meth:`end` raises the error of a meter that failed."""
        with self._guarded("meters"):
            meters = self._look.meters().items()
            self._meters = {name: _GuardedMeter(meter) for name, meter in meters}
        return self._meters

    def end(self) -> None:
        """End the look."""
        with self._guarded("end"):
            self._look.end()
        for meter in self._meters.values():
            if meter.trouble is not None:
                raise self._failure("meters", meter.trouble)

    def after(self) -> None:
        """Measure after the load."""
        with self._guarded("after"):
            self._look.after()

    def left(self) -> Mapping[str, pd.DataFrame]:
        """Return the tables of a trial that failed."""
        with self._guarded("left"):
            return dict(self._look.left())

    def observe(self, load: Load) -> Observation:
        """Return what the look has measured."""
        with self._guarded("observe"):
            observation = self._look.observe(load)
            if not isinstance(observation, Observation):
                raise TypeError(f"it returned {type(observation).__name__}, no Observation")
            return observation

    @contextlib.contextmanager
    def _guarded(self, step: str) -> Iterator[None]:
        try:
            yield
        except _PASSED_ON:
            raise
        except Exception as error:
            raise self._failure(step, error) from error

    def _failure(self, step: str, error: Exception) -> InstrumentFailed:
        kind = type(self._instrument)
        module, _, name = kind_of(kind).partition(":")
        text = " ".join(str(error).split())[:LONGEST_TEXT]
        problem = ": ".join(filter(None, [type(error).__name__, text]))
        where = _line_in(kind, error)
        return InstrumentFailed(f"instrument {name} ({module}) raised in {step}: {problem}{where}")


class _GuardedMeter:
    """A meter that keeps its error: nothing catches one in the sampler's thread."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.trouble: Exception | None = None

    def read(self, table: ProcessTable) -> Reading | None:
        with self._noted():
            return self._meter.read(table) if self.trouble is None else None
        return None

    def members(self, table: ProcessTable) -> list[int]:
        with self._noted():
            return self._meter.members(table) if self.trouble is None else []
        return []

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.trouble = error


def _line_in(instrument: type[Instrument], error: Exception) -> str:
    """Return the last line of the traceback that lies in the instrument's system."""
    try:
        home = system_folder(Path(inspect.getfile(instrument)))
    except (TypeError, OSError):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        if Path(frame.filename).is_relative_to(home):
            place = Path(frame.filename).relative_to(home.parent)
            return f" ({place}, line {frame.lineno}: {frame.line})"
    return ""
