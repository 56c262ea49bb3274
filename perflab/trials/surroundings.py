"""CPU that others used during a load, and looks whose errors name their instrument."""

from __future__ import annotations

import contextlib
import inspect
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from perflab.errors import InstrumentFailed, LoadError, RunInterrupted, StackError, WrongAnswer
from perflab.host.meters import ProcessTable, core_times
from perflab.instruments import Instrument, Load, Look, Scene
from perflab.instruments.instrument import kind_of
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


T = TypeVar("T")
LONGEST_TEXT = 300
# With these errors the lab fails a trial or ends a run; an instrument may raise them, too.
_PASSED_ON = (StackError, LoadError, WrongAnswer, RunInterrupted)


class GuardedLook:
    """The look of an instrument, whose own errors become :class:`InstrumentFailed`.

    The error names instrument, step, exception and line. Making the look is a step, too.
    """

    def __init__(self, instrument: Instrument, scene: Scene) -> None:
        self._kind = type(instrument)
        self.look: Look = self.take(instrument.look, scene)

    def take(self, step: Callable[..., T], *words: Scene | Load) -> T:
        """Take a step of the look and return its result."""
        try:
            return step(*words)
        except _PASSED_ON:
            raise
        except Exception as error:
            module, _, name = kind_of(self._kind).partition(":")
            text = " ".join(str(error).split())[:LONGEST_TEXT]
            problem = ": ".join(filter(None, [type(error).__name__, text]))
            raise InstrumentFailed(
                f"instrument {name} ({module}) raised in {step.__name__}: {problem}"
                + _line_in(inspect.getfile(self._kind), error)
            ) from error


def _line_in(file: str, error: Exception) -> str:
    """Return the last line of the traceback that lies in the instrument's file."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == file:
            return f" ({Path(file).name}, line {frame.lineno}: {frame.line})"
    return ""
