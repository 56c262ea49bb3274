"""A running service that is a plain process, with all that it started."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from perflab.errors import StackError
from perflab.host.meters import ProcessTreeMeter
from perflab.host.processes import bound_to, how_it_ended
from perflab.stacks import listening, stack_folders
from perflab.stacks.backend import (
    STOP_TIMEOUT_S,
    Launch,
    printed_by,
    rendered,
)
from perflab.stacks.commands import Interrupted, never, run_command
from perflab.stacks.service_processes import end, family, is_alive, of_service, working_in

# A command that ends in order may have started a server elsewhere, which listens within this time.
BACKGROUND_S = 5.0
HIDDEN = (
    "it went into the background, where its CPU and memory are unknown and the lab cannot end it: "
    "start it in the foreground"
)


@dataclass(eq=False, repr=False)
class ProcessInstance:
    """One service as a process in a session of its own."""

    launch: Launch
    _child: subprocess.Popen[bytes]
    _values: Mapping[str, object]
    _data: Path
    _environment: Mapping[str, str]
    _began: float = field(default_factory=time.monotonic)
    # What is no descendant of the command: servers of the service's ports, and all others.
    _daemons: list[psutil.Process] = field(default_factory=list)
    _others: list[psutil.Process] = field(default_factory=list)
    _is_hidden: bool = False
    _only_starts: bool = False

    def __post_init__(self) -> None:
        self._command = psutil.Process(self._child.pid)
        self._ports = {self.launch.port, self.launch.control_port}

    def follow(self) -> str:
        """Find the processes that are no descendants of the command, and record its servers."""
        labels = self.launch.labels
        descendants = {process.pid for process in family(self._child.pid)}
        labelled = {process.pid: process for process in of_service(labels.stack, labels.service)}
        self._others = [labelled[pid] for pid in labelled.keys() - descendants]
        listeners = listening.owners(self._ports)
        daemons = {
            pid: listening.daemon_of(pid, self._command) or labelled.get(pid or 0)
            for pid in listeners - descendants
        }
        self._daemons = list(dict.fromkeys([*self._daemons, *filter(None, daemons.values())]))
        self._is_hidden = not listeners or None in daemons.values()
        self._only_starts = is_alive(self._command) and self._child.pid not in listeners
        for daemon in self._daemons:
            stack_folders.record(stack_folders.make_stack(labels.stack), labels, daemon.pid)
        if self._is_hidden:
            return HIDDEN
        pids = ", ".join(str(daemon.pid) for daemon in self._daemons)
        return f"it went into the background; the lab follows it there (pid {pids})" * bool(pids)

    def has_left(self) -> bool:
        """Return whether the command, which was no server, has ended in order and left one."""
        return self._only_starts and not is_alive(self._command) and not self.exit_reason()

    def _roots(self) -> list[int]:
        """Return the processes whose descendants are the service; the command's is the first."""
        outside = [process for process in [*self._daemons, *self._others] if is_alive(process)]
        return [self._child.pid, *(process.pid for process in outside)]

    def pause(self) -> None:
        """Stop the whole tree with SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the whole tree with SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for process in family(*self._roots()):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def stop(self, keep_data: bool = False, interrupted: Interrupted = never) -> bool:
        """End the service with all processes that it started; return whether some were killed."""
        first = signal.Signals[self.launch.spec.stop_signal]
        self.follow()
        ending = [*family(*self._roots()), *working_in(self._data)]
        killed = end(ending, first, STOP_TIMEOUT_S, interrupted)
        # Nobody has waited for the first process yet, so its id is still the id of its group.
        if self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        if not keep_data:
            shutil.rmtree(self._data, ignore_errors=True)
        return bool(killed)

    def exit_status(self) -> int | None:
        """Return the exit status of the command (a signal: negative); None while it runs."""
        if self._child.returncode is not None:
            return self._child.returncode
        # WNOWAIT: until `stop` has ended its children, no other process may get its id.
        ended = os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    def exit_reason(self) -> str:
        """Return how the service ended, or an empty string while it runs."""
        code = self.exit_status()
        if code:
            return how_it_ended(code)
        if self._daemons:
            gone = "its server, which had gone into the background, has ended"
            return gone * (not any(map(is_alive, self._daemons)))
        return how_it_ended(0) * (code == 0 and not self._goes_on())

    def _goes_on(self) -> bool:
        """Return whether a command that has ended in order left a server, or may have left one."""
        if time.monotonic() < self._began + BACKGROUND_S or listening.owners(self._ports):
            return True
        return bool(of_service(self.launch.labels.stack, self.launch.labels.service))

    def log(self, lines: int = 30) -> str:
        """Return the last lines of the service's log file."""
        labels = self.launch.labels
        return stack_folders.tail(stack_folders.log_path(labels.stack, labels.service), lines)

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
        """Return the id of the server's first process, or that of its command."""
        return self._daemons[0].pid if self._daemons else self._child.pid

    def meter(self) -> ProcessTreeMeter:
        """Return the meter of all processes of the service; of none if others answer for it."""
        return ProcessTreeMeter(*([] if self._is_hidden else self._roots()))
