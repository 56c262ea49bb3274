"""Start the conductor and follow its run: synchronous, in a kernel, in papermill or in a script."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from perflab import errors
from perflab.analysis.gates.first_line import are_of_a_duel
from perflab.errors import ConductorLost, PerflabError, RunInterrupted
from perflab.host.processes import how_it_ended
from perflab.paths import foreign_environment, project_root
from perflab.trials.plan import Order
from perflab.trials.progress import Event, Failed, Note, RunBegun, parse

CONDUCTOR = "perflab.trials.conductor"
ORDERLY_END_S, IMPORTED_WITHIN_S = 45.0, 30.0


class Conducted:
    """A conductor at work: its events, and how to end it."""

    def __init__(self, order: Order) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", CONDUCTOR],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
            cwd=project_root(),
            env=_environment(),
        )
        assert self._child.stdin is not None
        # A conductor that is dead already says why itself, and is found lost.
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write(order.model_dump_json().encode() + b"\n")
        self._pending = b""
        self.pid = self._child.pid

    def events(self) -> Iterator[Event]:
        """Yield events until the conductor ends."""
        assert self._child.stdout is not None
        descriptor = self._child.stdout.fileno()
        while True:
            # A blocking read would not notice an interrupt that came just before it.
            if not select.select([descriptor], [], [], 1.0)[0]:
                continue
            arrived = os.read(descriptor, 1 << 16)
            if not arrived:
                return
            *lines, self._pending = (self._pending + arrived).split(b"\n")
            yield from map(parse, lines)

    def ask_to_stop(self) -> None:
        """Ask the conductor to end in order."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            assert self._child.stdin is not None
            self._child.stdin.write(b"stop\n")

    def leave(self) -> None:
        """Ask the conductor to end, close its events, and wait for its end."""
        self.ask_to_stop()
        assert self._child.stdout is not None
        self._child.stdout.close()
        self.wait()

    def wait(self) -> int:
        """Wait for the conductor's end; kill it when that takes too long: the reapers clean up."""
        try:
            return self._child.wait(timeout=ORDERLY_END_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()


def conduct(order: Order, show: Callable[[Event], None]) -> Path:
    """Run an order and return the run's folder; ``show`` receives every event.

    Raises RunInterrupted where the user interrupted a measurement (the trial under way ended in
    order), and PerflabError, the error that the conductor reported. Committed trials are kept.
    """
    conducted = Conducted(order)
    command = "duel" if are_of_a_duel(order.plan.contrasts) else "run"
    path: Path | None = None
    failure: Failed | None = None
    interrupted = False
    while True:
        try:
            # An interrupt ends the generator; a new one goes on.
            for event in conducted.events():
                if isinstance(event, RunBegun):
                    path = Path(event.path)
                elif isinstance(event, Failed):
                    failure = event
                show(event)
            break
        except KeyboardInterrupt:
            if not interrupted:
                conducted.ask_to_stop()
                show(Note(text="interrupted: the trial under way is ended in order"))
            interrupted = True
        except BaseException:
            # ``show`` failed.
            conducted.leave()
            raise
    code = conducted.wait()
    # Where only its explanation was interrupted, the run has its answer.
    is_answered = order.plan.why and not code and failure is None and path is not None
    if interrupted and not is_answered:
        raise RunInterrupted(_resume_hint("the run was interrupted", path, command))
    if failure is not None:
        raise _as_error(failure, path, command)
    if code or path is None:
        subject = f"the conductor (pid {conducted.pid}), which runs the trials,"
        lost = f"{subject} {how_it_ended(code)} before the run was finished"
        why = "" if path else _not_importable()
        raise ConductorLost(_resume_hint(lost, path, command) + why)
    return path


def _environment() -> dict[str, str]:
    return {**os.environ, **foreign_environment()}


def _not_importable() -> str:
    """Return why a conductor cannot begin here at all, as a clause; or nothing."""
    words = [sys.executable, "-c", f"import {CONDUCTOR}"]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            words, capture_output=True, text=True, cwd=project_root(), env=_environment(),
            timeout=IMPORTED_WITHIN_S,
        )  # fmt: skip
        if done.returncode and done.stderr:
            return f": it cannot be imported, {done.stderr.strip().splitlines()[-1]}"
    return ""


def _resume_hint(text: str, path: Path | None, command: str) -> str:
    if path is None:
        return f"{text}; nothing had been measured yet"
    gate = ", with its --fail-on again," if command == "duel" else ""
    return (
        f"{text}; the run, with the trials that are finished, is in {path}. Go on with "
        f"'perflab {command} --resume {path.name}'{gate} (parameter resume='{path.name}')"
    )


def _as_error(failed: Failed, path: Path | None, command: str) -> PerflabError:
    """Rebuild the conductor's error under its own class, so that callers can tell them apart."""
    kind = getattr(errors, failed.kind, PerflabError)
    text = failed.text
    if kind is RunInterrupted:
        text = _resume_hint(text, path, command)
    error: PerflabError = kind.__new__(kind)
    Exception.__init__(error, text)
    return error
