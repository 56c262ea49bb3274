"""The sensor of an instrument, whose own errors name it."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from perflab.errors import InstrumentFailed, LoadError, RunInterrupted, StackError, WrongAnswer
from perflab.instruments import Instrument, Load, Scene, Sensor
from perflab.instruments.instrument import kind_of

T = TypeVar("T")
LONGEST_TEXT = 300
# With these errors the lab fails a trial or ends a run; an instrument may raise them, too.
_PASSED_ON = (StackError, LoadError, WrongAnswer, RunInterrupted)


class GuardedSensor:
    """The sensor of an instrument, whose own errors become :class:`InstrumentFailed`.

    The error names instrument, step, exception and line. Making the sensor is a step, too.
    """

    def __init__(self, instrument: Instrument, scene: Scene) -> None:
        self._kind = type(instrument)
        self.sensor: Sensor[Any] = self.take(instrument.sensor, scene)

    def take(self, step: Callable[..., T], *words: Scene | Load) -> T:
        """Take a step of the sensor and return its result."""
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
