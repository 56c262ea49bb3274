"""A running service as a plain process."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from perflab.errors import StackError
from perflab.host.meters import ProcessTreeMeter
from perflab.host.processes import how_it_ended
from perflab.stacks import cleanup
from perflab.stacks.backend import Interrupted, Launch, never, printed_by, rendered, run_command
from perflab.stacks.cleanup import end, family, of_service, working_in

STOP_TIMEOUT_S = 10.0


@dataclass(eq=False, repr=False)
class ProcessInstance:
    """One service as a process in a session of its own."""

    launch: Launch
    _child: subprocess.Popen[bytes]
    _values: Mapping[str, object]
    _data: Path
    _environment: Mapping[str, str]

    def pause(self) -> None:
        """Stop the whole tree with SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the whole tree with SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for process in family(self._child.pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def stop(self) -> None:
        """End the service in order, with all processes that it started, then remove its data."""
        first = signal.Signals[self.launch.spec.stop_signal]
        labels = self.launch.labels
        others = of_service(labels.stack, labels.service) + working_in(self._data)
        end([*family(self._child.pid), *others], first, STOP_TIMEOUT_S)
        # Nobody has waited for the first process yet, so its id is still the id of its group.
        if self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        shutil.rmtree(self._data, ignore_errors=True)

    def exit_reason(self) -> str:
        """Return how the first process ended, or an empty string while it runs."""
        code = self._child.returncode
        if code is None:
            # WNOWAIT: until `stop` has ended its children, no other process may get its id.
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            ended = os.waitid(os.P_PID, self._child.pid, options)
            if ended is None:
                return ""
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return how_it_ended(code)

    def log(self, lines: int = 30) -> str:
        """Return the last lines of the service's log file."""
        labels = self.launch.labels
        return cleanup.tail(cleanup.log_path(labels.stack, labels.service), lines)

    def run(
        self, command: Sequence[str], timeout_s: float = 30.0, interrupted: Interrupted = never
    ) -> str:
        """Run a command with the service's placeholders, environment and cores."""
        words = rendered(command, self._values)
        during = f"while '{words[0]}' ran"
        try:
            with bound_to(self.launch.cores):
                done = run_command(words, interrupted, during, self._environment, None, timeout_s)
        except TimeoutError:
            raise StackError(f"'{words[0]}' took longer than {timeout_s:g} s") from None
        except OSError as error:
            raise StackError(f"'{words[0]}' cannot run: {error}") from None
        return printed_by(words, done.returncode, done.stdout, done.stderr)

    @property
    def pid(self) -> int:
        """Return the id of the command's process."""
        return self._child.pid

    def meter(self) -> ProcessTreeMeter:
        """Return the meter of the process tree."""
        return ProcessTreeMeter(self._child.pid)


@contextlib.contextmanager
def bound_to(cores: Sequence[int]) -> Iterator[None]:
    """Bind this thread to cores; a child that the block starts inherits them from its beginning."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(cores))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
