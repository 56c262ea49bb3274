"""Does the self-check refuse a client that stood still, and leave a healthy one alone?

A load worker is stopped (SIGSTOP) and let go on (SIGCONT): for 10 to 200 ms, once or again and
again, in a closed and in an open loop, against a local server of some milliseconds. Beside each
load a witness on the server's core notes how late it is woken itself: where a healthy client is
refused and the witness was late too, the machine was disturbed, and the refusal is an honest one.

``moved`` counts the loads in which the stalls could be seen from outside: p99, mean or throughput
off the median of the healthy loads of its kind by more than a tenth and more than these scatter.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import bench
import numpy as np
from scipy import stats

from perflab.load.looks import Looks, Probe
from perflab.load.selfcheck import SelfCheck, check
from perflab.load.times import times_of
from perflab.load.workload import ClosedLoop, OpenLoop, Request, Stage, Workload

USERS, RATE = 10, 500.0
DELAY_MS = 5.0
LENGTHS_MS = (10, 20, 50, 100, 200)
LOOPS = ("closed", "open")
OFTEN, ONCE, HEALTHY = "a fifth of the time", "once", "healthy"
NUMBERS = ("p99", "mean", "rate")


@dataclass(frozen=True)
class Case:
    """A kind of load and of disturbance."""

    loop: str
    way: str = HEALTHY
    stall_ms: int = 0

    @property
    def text(self) -> str:
        """Name it."""
        return self.way if self.way == HEALTHY else f"{self.stall_ms} ms, {self.way}"


@dataclass
class Seen:
    """What became of the loads of a case."""

    valid: list[bool] = field(default_factory=list)
    disturbed: list[bool] = field(default_factory=list)
    numbers: list[dict[str, float]] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)


class Witness:
    """A thread that notes how late it is woken, where the load worker does not run."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.probe = Probe(time.monotonic_ns())

    def _watch(self) -> None:
        os.sched_setaffinity(0, {bench.cores()[0]})
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        while not self._over.is_set():
            time.sleep(max(0.0, (self.probe.due_ns - time.monotonic_ns()) / 1e9))
            self.probe.look(time.monotonic_ns())

    def __enter__(self) -> Witness:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def longest_ms(self) -> float:
        """Return by how much it was late at most."""
        return float(Looks.of(self.probe.report()).late_ms.max(initial=0))


@contextlib.contextmanager
def stalls(pid: int, case: Case, seconds: float) -> Iterator[None]:
    """Stop a process as the case has it, in the background, and let it go on at the end."""
    over = threading.Event()

    def stop() -> None:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(case.stall_ms / 1e3)
        os.kill(pid, signal.SIGCONT)

    def act() -> None:
        if case.way == ONCE:
            if not over.wait(random.uniform(0.3, 0.7) * seconds):
                stop()
            return
        while not over.wait(4 * case.stall_ms / 1e3):
            stop()

    thread = threading.Thread(target=act)
    if case.way != HEALTHY:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if thread.is_alive():
            thread.join()
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def workload(loop: str, seconds: float) -> Workload:
    """Return a load of a kind."""
    if loop == "closed":
        return Workload(request=Request(), arrivals=ClosedLoop(users=USERS, duration_s=seconds))
    stage = Stage(rate=RATE, duration_s=seconds)
    return Workload(request=Request(), arrivals=OpenLoop(stages=(stage,)))


def judge(case: Case, url: str, seconds: float) -> tuple[SelfCheck, dict[str, float], float]:
    """Send one load; return what the generator says of itself, its numbers, and the witness's."""
    work = workload(case.loop, seconds)
    with bench.generator() as made, Witness() as witness, stalls(made.pids[0], case, seconds):
        result = made.run(work, url)
    numbers = times_of(result).numbers()
    shown = {name: numbers[name].bound.low for name in ("p99", "mean")}
    found = check(result, work)
    shown["rate"] = result.throughput_rps
    result.discard()
    return found, shown, witness.longest_ms


def has_moved(shown: dict[str, float], healthy: list[dict[str, float]]) -> bool:
    """Return whether a number is off the healthy ones by more than a tenth and their scatter."""
    for name in NUMBERS:
        usual = np.array([each[name] for each in healthy])
        off = abs(shown[name] / float(np.median(usual)) - 1)
        if off > max(0.10, float(np.abs(usual / np.median(usual) - 1).max())):
            return True
    return False


def row(case: Case, seen: Seen, healthy: list[dict[str, float]]) -> str:
    """Return a row of the table."""
    n, refused = len(seen.valid), seen.valid.count(False)
    share = stats.binomtest(refused, n).proportion_ci(method="wilson")
    moved = [has_moved(each, healthy) for each in seen.numbers]
    passed = sum(is_moved and valid for is_moved, valid in zip(moved, seen.valid, strict=True))
    honest = sum(late and not valid for late, valid in zip(seen.disturbed, seen.valid, strict=True))
    codes = ", ".join(dict.fromkeys(code for code in seen.codes if code))
    interval = f"[{share.low:.0%}, {share.high:.0%}]"
    return (
        f"{case.loop:8}{case.text:28}{n:>4}{refused:>9} {interval:>13}{sum(moved):>7}"
        f"{passed:>17}{honest:>10}  {codes}"
    )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="of every kind of stall")
    parser.add_argument("--healthy", type=int, default=20, help="of each loop, not disturbed")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--lengths", type=int, nargs="*", default=list(LENGTHS_MS), help="in ms")
    given = parser.parse_args()
    order = [Case(loop) for loop in LOOPS for _ in range(given.healthy)]
    order += [
        Case(loop, way, stall_ms)
        for loop in LOOPS
        for way in (OFTEN, ONCE)
        for stall_ms in given.lengths
        for _ in range(given.runs)
    ]
    random.shuffle(order)
    table: dict[Case, Seen] = {}
    with bench.known_server("--kind", "constant", "--delay-ms", f"{DELAY_MS:g}") as (url, _):
        for number, case in enumerate(order):
            found, shown, late_ms = judge(case, url, given.seconds)
            seen = table.setdefault(case, Seen())
            seen.valid.append(found.valid)
            seen.numbers.append(shown)
            # A tenth of the time that the server takes.
            seen.disturbed.append(late_ms > max(2.0, DELAY_MS))
            seen.codes += [reason.code.partition(".")[2] for reason in found.reasons]
            why = str(found.reasons[0]) if found.reasons else "valid"
            print(
                f"{number + 1}/{len(order)} {case.loop}, {case.text}: {why} (witness "
                f"{late_ms:.1f} ms)",
                file=sys.stderr,
            )
    head = f"{'loop':8}{'stalls':28}{'n':>4}{'refused':>9} {'95%':>13}{'moved':>7}"
    print(f"{head}{'moved and passed':>17}{'disturbed':>10}  grounds")
    for case in sorted(table, key=lambda each: (each.loop, each.way, each.stall_ms)):
        print(row(case, table[case], table.get(Case(case.loop), table[case]).numbers))


if __name__ == "__main__":
    main()
