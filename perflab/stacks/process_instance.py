"""One running service as a plain process."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil

from perflab.errors import StackError
from perflab.host.endings import how_it_ended
from perflab.sampling.meters import ProcessTreeMeter
from perflab.stacks import kin, survey
from perflab.stacks.backend import Launch, rendered

STOP_TIMEOUT_S = 10.0


class ProcessInstance:
    """One service as a process in a session of its own."""

    def __init__(
        self, launch: Launch, child: subprocess.Popen[bytes], values: dict[str, object], data: Path
    ) -> None:
        self.launch = launch
        self._child = child
        self._values = values
        self._data = data

    def pause(self) -> None:
        """Stop the whole tree with SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the whole tree with SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for process in kin.family(self._child.pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def stop(self) -> None:
        """End it in order, with everything it ever started, then remove its data."""
        first = signal.Signals[self.launch.spec.process.stop_signal]
        labels = self.launch.labels
        own = survey.of_service(labels.stack, labels.service) + kin.working_in(self._data)
        kin.end([*kin.family(self._child.pid), *own], first, STOP_TIMEOUT_S)
        # Nobody has waited for the first process yet, so its number is still that of its group.
        if self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        shutil.rmtree(self._data, ignore_errors=True)

    def exit_reason(self) -> str:
        """Return how the first process ended, or an empty string while it runs."""
        code = self._child.returncode
        if code is None:
            # WNOWAIT: until `stop` has ended its children, its number must not become another's.
            look = os.WEXITED | os.WNOHANG | os.WNOWAIT
            ended = os.waitid(os.P_PID, self._child.pid, look)
            if ended is None:
                return ""
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return how_it_ended(code)

    def pids(self) -> list[int]:
        """Return the numbers of its processes."""
        return [process.pid for process in kin.family(self._child.pid)]

    def log(self, lines: int = 30) -> str:
        """Return the last lines of its log file."""
        return tail(Path(self.launch.labels.log), lines)

    def run(self, command: Sequence[str], timeout_s: float = 30.0) -> str:
        """Run a command with the service's placeholders filled."""
        try:
            done = subprocess.run(
                rendered(command, self._values),
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise StackError(f"'{command[0]}' took longer than {timeout_s:g} s") from None
        if done.returncode:
            raise StackError(f"'{' '.join(command)}' failed: {done.stderr.strip()}")
        return done.stdout

    @property
    def pid(self) -> int:
        """Return the id of the command's process."""
        return self._child.pid

    def meter(self) -> ProcessTreeMeter:
        """Return the meter of the process tree."""
        return ProcessTreeMeter(self._child.pid)


def tail(path: Path, lines: int) -> str:
    """Return the last lines of a text file, or an empty string when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 64 * 1024))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
