"""SIGKILL over every process of a run: what is left, what is lost, and who is named?

Each case is a run of its own, on a small stack (PostgreSQL, the link, a service with a master and
two workers). Its victims are killed at once, during a load, after some trials were committed. Then:

- the time until none of the processes and containers that the victims leave without a master is
  there any more, and, where the run ends by it, until the host's lock is free;
- whether the committed trials are there as they were, and, after ``--resume`` of a run that was
  cut off, whether each trial of the plan is there exactly once;
- the sentence that names who was killed.

A run that goes on is told to stop once it has named its victim. The exit status is 1 when
something was left after 15 s, a trial was lost or changed, or a victim was not named.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import queue
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from perflab.errors import PerflabError, UnknownEvent
from perflab.host.lock import holder
from perflab.recordings import Run
from perflab.stacks import leftovers
from perflab.stacks.docker_backend import connect
from perflab.systems import experiment
from perflab.trials.client import conduct
from perflab.trials.conductor import Order
from perflab.trials.events import (
    Event,
    Failed,
    LoadProgress,
    Note,
    RunBegun,
    TrialBegun,
    TrialDone,
    parse,
)

WITHIN_S = 15.0
PATIENCE_S = 120.0
SMALL = {
    "blocks": 2, "requests": 1500, "warmup_requests": 10, "concurrency": 5, "workers": 2,
    "pool_size": 4, "seed": 7,
}  # fmt: skip
# Whom a run does not survive: it is resumed.
ENDING = {"command", "conductor"}


@dataclass
class Outcome:
    """What one case showed."""

    victims: tuple[str, ...]
    ended: str = ""
    clean_s: float = float("nan")
    before: int = 0
    after: int = 0
    named: str = ""
    faults: list[str] = field(default_factory=list)

    def row(self) -> str:
        """Return the table's line."""
        verdict = "; ".join(self.faults) or "ok"
        who = " + ".join(self.victims)
        return (
            f"{who:<32}{self.ended:<10}{self.clean_s:>6.1f}{self.before:>7}{self.after:>7}  "
            f"{verdict:<4} {self.named[:90]}"
        )


class Asked:
    """A command that asked for a run, in a process that can be killed; its events come in order."""

    def __init__(self, order: Order) -> None:
        self.events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._waited = False
        self._read, write = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._read)
            _ask(order, write)
        os.close(write)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with os.fdopen(self._read) as lines:
            for line in lines:
                with suppress(UnknownEvent):
                    self.events.put(parse(line))
        self.events.put(None)

    def next(self) -> Event | None:
        """Return the next event, None when the command is gone."""
        return self.events.get(timeout=PATIENCE_S)

    def stop(self) -> None:
        """Interrupt it as a user does unless it has ended, and wait for its end."""
        if self._waited:
            return
        self._waited = True
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)
        os.waitpid(self.pid, 0)


def _ask(order: Order, descriptor: int) -> None:
    """Ask for the run in the child; every event, and the error at the end, is one line."""

    def show(event: Event) -> None:
        os.write(descriptor, event.model_dump_json().encode() + b"\n")

    try:
        conduct(order, show)
    except (PerflabError, KeyboardInterrupt) as error:
        show(Failed(kind=type(error).__name__, text=str(error)))
    finally:
        os._exit(0)


class Scene:
    """The processes of a run under way, by what they do."""

    def __init__(self, command: int) -> None:
        self.command = psutil.Process(command)
        (self.conductor,) = [
            child
            for child in self.command.children()
            if "perflab.trials.conductor" in child.cmdline()
        ]
        self._found = leftovers.everything()

    def victim(self, kind: str) -> psutil.Process:
        """Return a process of a kind that the table names."""
        kind, _, number = kind.partition("/")
        if kind in ("command", "conductor"):
            process: psutil.Process = getattr(self, kind)
            return process
        if kind == "reaper":
            reapers = [
                child
                for child in self.conductor.children()
                if "perflab.stacks.reaper" in child.cmdline()
            ]
            return reapers[int(number or 0)]
        if kind == "worker":
            return self._children("inference", "spawn_main")[int(number or 0)]
        if kind == "checkpointer":
            return self._children("postgres", "checkpointer")[0]
        if kind == "backend":
            return self._children("postgres", "perflab perflab")[0]
        return self._first("client" if kind == "load worker" else kind)

    def _first(self, service: str) -> psutil.Process:
        (found,) = [item for item in self._found if item.service == service]
        if found.backend == "process":
            return psutil.Process(int(found.identity))
        state = connect().containers.get(found.identity).attrs["State"]
        return psutil.Process(int(state["Pid"]))

    def _children(self, service: str, what: str) -> list[psutil.Process]:
        children = self._first(service).children()
        return [child for child in children if what in " ".join(child.cmdline())]


KINDS = (
    "command", "conductor", "reaper/0", "reaper/1", "load worker", "inference", "worker/0",
    "worker/1", "link", "postgres", "checkpointer", "backend",
)  # fmt: skip
PAIRS = (
    ("conductor", "reaper/0"), ("conductor", "reaper/1"), ("conductor", "inference"),
    ("conductor", "postgres"), ("command", "conductor"), ("reaper/0", "reaper/1"),
    ("reaper/0", "inference"), ("inference", "worker/0"), ("postgres", "load worker"),
    ("command", "reaper/0"),
)  # fmt: skip


def cases(count: int) -> list[tuple[str, ...]]:
    """Return whom each case kills: every fifth a pair, the others each kind in turn."""
    singles, pairs = itertools.cycle(KINDS), itertools.cycle(PAIRS)
    return [next(pairs) if number % 5 == 4 else (next(singles),) for number in range(count)]


def contents(run: Path) -> dict[str, str]:
    """Return a hash of every committed trial's files."""
    found = {}
    for trial in sorted(run.glob("trials/b*")):
        digest = hashlib.sha256()
        for file in sorted(trial.iterdir()):
            digest.update(file.name.encode() + file.read_bytes())
        found[trial.name] = digest.hexdigest()
    return found


def case(victims: tuple[str, ...], backend: str, runs: Path, chance: random.Random) -> Outcome:
    """Kill the victims of one run; return what became of it."""
    outcome = Outcome(victims)
    chosen = experiment("synchronous_commit")
    order = Order(plan=chosen.plan(chosen.check(SMALL)), backend=backend, runs=runs)
    asked = Asked(order)
    try:
        return _killed(asked, order, outcome, chance)
    finally:
        asked.stop()


def _killed(asked: Asked, order: Order, outcome: Outcome, chance: random.Random) -> Outcome:
    victims = outcome.victims
    path = _until_under_way(asked, wanted=chance.randrange(3))
    time.sleep(chance.uniform(0.0, 0.3))
    before = contents(path)
    outcome.before = len(before)
    scene = Scene(asked.pid)
    chosen_ones = [scene.victim(kind) for kind in victims]
    pids = [process.pid for process in chosen_ones]
    orphans = [child for process in chosen_ones for child in _left_by(process, scene)]
    began = time.monotonic()
    for process in chosen_ones:
        process.kill()
    ends = bool(ENDING & set(victims))
    if "command" in victims:
        asked.stop()
    outcome.clean_s = _until_clean(orphans, ends, began)
    if not outcome.clean_s < WITHIN_S:
        outcome.faults.append(f"left after {WITHIN_S:g} s: {_left(orphans, ends)}")
    said = _said(asked, ends)
    asked.stop()
    outcome.named = _named(said, path, victims, pids)
    if not outcome.named:
        outcome.faults.append("not named")
    now = contents(path)
    if any(now.get(name) != digest for name, digest in before.items()):
        outcome.faults.append("a committed trial is lost or changed")
    outcome.ended = Run(path).record.state
    if ends:
        _resume(order, path, before, outcome)
    outcome.after = len(Run(path).trials())
    if leftovers.everything() or holder():
        outcome.faults.append("not clean at the end")
    return outcome


def _left_by(process: psutil.Process, scene: Scene) -> list[psutil.Process]:
    """Return whom a victim leaves behind: its descendants, and all of the run with a conductor."""
    if process in (scene.command, scene.conductor):
        return [scene.conductor, *scene.conductor.children(recursive=True)]
    return [process, *process.children(recursive=True)]


def _until_under_way(asked: Asked, wanted: int) -> Path:
    """Wait for a load, after some trials were committed; return the run's folder."""
    path, done = Path(), 0
    while (event := asked.next()) is not None:
        if isinstance(event, RunBegun):
            path = Path(event.path)
        done += isinstance(event, TrialDone)
        if isinstance(event, LoadProgress) and done >= wanted:
            return path
        if isinstance(event, Failed):
            sys.exit(f"the run was not to end yet: {event.text}")
    sys.exit("the run was not to end yet")


def _left(orphans: list[psutil.Process], ends: bool) -> str:
    left = [f"{item.pid}" for item in orphans if _is_alive(item)]
    if ends:
        left += [f"{item.service} ({item.backend})" for item in leftovers.everything()]
        left += ["the lock"] if holder() else []
    return ", ".join(left)


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _until_clean(orphans: list[psutil.Process], ends: bool, began: float) -> float:
    while time.monotonic() < began + WITHIN_S:
        with suppress(psutil.NoSuchProcess):
            if not _left(orphans, ends):
                return time.monotonic() - began
        time.sleep(0.1)
    return float("inf")


def _said(asked: Asked, ends: bool) -> str:
    """Return what the run says of it: until its end, or until the trial under way is over."""
    said = []
    while (event := asked.next()) is not None:
        said += _texts(event)
        if not ends and isinstance(event, TrialDone):
            # The reapers are looked after before the next trial.
            while (event := asked.next()) is not None and not isinstance(event, TrialBegun):
                said += _texts(event)
            break
    return "\n".join(said)


def _texts(event: Event) -> list[str]:
    if isinstance(event, TrialDone):
        return [reason.text for reason in event.reasons]
    return [event.text] if isinstance(event, (Note, Failed)) else []


MARKS = {
    "command": "the program that asked for it is gone",
    "conductor": "conductor (pid {pid})",
    "reaper": "a reaper (pid {pid})",
    "load worker": "load worker died (pid {pid})",
    "worker": "'inference' lost process {pid}",
    "checkpointer": "'postgres' lost process",
    "backend": "'postgres' lost process",
    "inference": "'inference': was ended by SIGKILL|'inference': its container was ended by",
    "link": "'link': was ended by SIGKILL|'link': its container was ended by",
    "postgres": "'postgres': was ended by SIGKILL|'postgres': its container was ended by",
}


def _named(said: str, path: Path, victims: tuple[str, ...], pids: list[int]) -> str:
    """Return the sentence that names a victim; of two, the one that hides the other is enough."""
    said += "\n" + Run(path).record.reason
    for kind, pid in zip(victims, pids, strict=True):
        for mark in MARKS[kind.partition("/")[0]].format(pid=pid).split("|"):
            at = said.find(mark)
            if at >= 0:
                return said[max(0, said.rfind("\n", 0, at) + 1) :].partition("\n")[0].strip()
    # Command and conductor at once: who could have told is gone, and the record says "running".
    return "(nobody is left to tell)" if set(victims) == ENDING else ""


def _resume(order: Order, path: Path, before: dict[str, str], outcome: Outcome) -> None:
    conduct(order.model_copy(update={"resume": path}), lambda _: None)
    run = Run(path)
    trials = run.trials()
    current = trials[~trials["superseded"]]
    places = sorted(zip(current["block"], current["position"], strict=True))
    plan = order.plan
    wanted = itertools.product(range(plan.blocks), range(len(plan.treatments)))
    if places != list(wanted):
        outcome.faults.append(f"after the resume: {places}")
    now = contents(path)
    if any(now.get(name) != digest for name, digest in before.items()) or run.problems:
        outcome.faults.append("a trial was lost or changed by the resume")


@contextmanager
def own_places() -> Iterator[Path]:
    """Give the benchmark a state, recordings and a lock of its own."""
    with tempfile.TemporaryDirectory(
        prefix="perflab-kills-", dir="/var/tmp", ignore_cleanup_errors=True
    ) as folder:
        root = Path(folder)
        root.chmod(0o755)
        places = {"STATE": "state", "RUNS": "runs", "FIGURES": "figures", "LOCK": "host.lock"}
        os.environ.update({f"PERFLAB_{name}": str(root / place) for name, place in places.items()})
        try:
            yield root
        finally:
            leftovers.remove_of_kind(None)


def main() -> int:
    """Kill, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=50, help="cases in all")
    parser.add_argument("--first", type=int, default=0, help="first case of this piece")
    parser.add_argument("--last", type=int, default=None, help="one after the last of this piece")
    parser.add_argument("--backend", default="process", choices=("process", "docker"))
    given = parser.parse_args()
    print(f"{'killed':<32}{'run is':<10}{'s':>6}{'before':>7}{'after':>7}  verdict, who was named")
    faults = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended before the last case"))
    with own_places() as root:
        for number, victims in list(enumerate(cases(given.count)))[given.first : given.last]:
            chance = random.Random(number)
            outcome = case(victims, given.backend, root / "runs", chance)
            faults += bool(outcome.faults)
            print(outcome.row(), flush=True)
    print(f"{faults} cases with a fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
