"""Samples of the system calls in which threads are blocked.

The kernel shows the number and the arguments of the call that a blocked thread is in
(``/proc/PID/task/TID/syscall``, proc(5)), to whom it lets read the process's memory (ptrace(2)).
"""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from contextlib import suppress

from perflab.host.kernel_counts import read
from perflab.host.meters import Meter, ProcessTable, Repeated
from perflab.host.thread_accounts import accounts_of

INTERVAL_S, MEMBERS_EVERY_S = 0.004, 0.1
SLEEP, FLUSH = "the end of a sleep", "a flush to disk"
FILE_LOCK, TIMER = "the lock of a file", "a timer"
# By the number of the call. Source: Linux, the system call tables of both machines.
CALLS = {
    "x86_64": {35: SLEEP, 230: SLEEP, 74: FLUSH, 75: FLUSH, 162: FLUSH, 73: FILE_LOCK, 232: TIMER,
               281: TIMER},
    "aarch64": {101: SLEEP, 115: SLEEP, 82: FLUSH, 83: FLUSH, 81: FLUSH, 32: FILE_LOCK, 22: TIMER},
}.get(platform.machine(), {})  # fmt: skip
# Of epoll_wait and epoll_pwait: after the number stand four arguments, the last in ms.
TIMEOUT_WORD, NEVER = 4, 1 << 31
Blocked = tuple[int, str, int]


class BlockedThreads(Repeated):
    """Samples what the threads of a service are blocked in.

    ``seen`` counts samples by thread, kind of wait, and the time-out (ms) of a timer; ``samples``
    is the number of samples. ``ran_ns`` is the time on a core of each thread at its first and last
    reading. What the kernel does not tell stays empty.
    """

    def __init__(self, meter: Meter, interval_s: float = INTERVAL_S) -> None:
        super().__init__(self._sample, interval_s)
        self._meter = meter
        self._members: list[int] = []
        self._read_members_at = 0.0
        self.seen: Counter[Blocked] = Counter()
        self.samples = 0
        self.ran_ns: dict[int, tuple[int, int]] = {}

    @property
    def busiest(self) -> dict[int, float]:
        """Return the share of each thread in what all of them ran."""
        ran = {thread: last - first for thread, (first, last) in self.ran_ns.items()}
        whole = max(1, sum(ran.values()))
        return {thread: ns / whole for thread, ns in ran.items()}

    def _sample(self) -> None:
        now = time.monotonic()
        if now >= self._read_members_at:
            self._members = self._meter.members(ProcessTable())
            self._read_members_at = now + MEMBERS_EVERY_S
            for (_, thread), (run_ns, _) in accounts_of(self._members).items():
                self.ran_ns[thread] = self.ran_ns.get(thread, (run_ns, 0))[0], run_ns
        self.samples += 1
        for pid in self._members:
            with suppress(OSError):
                for entry in os.listdir(f"/proc/{pid}/task"):
                    if found := blocked_in(read(f"/proc/{pid}/task/{entry}/syscall")):
                        self.seen[int(entry), *found] += 1


def blocked_in(call: str) -> tuple[str, int] | None:
    """Return the kind of a wait and the time-out (ms) of a timer; None for any other call."""
    number, *arguments = call.split()[: TIMEOUT_WORD + 1] or [""]
    kind = CALLS.get(int(number)) if number.isdecimal() else None
    if kind != TIMER:
        return (kind, 0) if kind else None
    timeout_ms = int(arguments[-1], 16) & 0xFFFFFFFF
    return (TIMER, timeout_ms) if 0 < timeout_ms < NEVER else None
