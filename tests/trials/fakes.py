"""Fake services and load workers for trials: they act as the test says, and note their calls."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from perflab.host.meters import ProcessTable, Reading
from perflab.host.placing import placement
from perflab.instruments.probes import CpuSpeed, FlushProbe
from perflab.instruments.requests import Requests, ServerCount
from perflab.load.records.result import LoadResult
from perflab.load.workers.generator import Progress, StopLoad
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.load.workload.windows import instants_of
from perflab.recordings import Run, RunWriter
from perflab.stacks.plan import Node, StackPlan
from perflab.trials.conductor import new_record
from perflab.trials.plan import RunPlan, Treatment
from perflab.trials.progress import Event, LoadProgress, Note, TrialBegun, TrialDone
from perflab.trials.session import Session
from perflab.trials.trial import Bench
from tests.load.planted import BEGIN_NS, S, load_result

REQUESTS = 500
BACKEND: Any = SimpleNamespace(name="process", network_path="loopback")
AnyEvent = TypeVar("AnyEvent", LoadProgress, Note, TrialBegun, TrialDone)


@dataclass
class Instance:
    """A service that uses a share of a core; ``flush_us`` is the output of its probe."""

    cpu_share: float = 0.0
    flush_us: str = '{"flush_us": [100.0, 300.0]}'

    def __post_init__(self) -> None:
        probes = {"flush": ("probe",)}
        self.launch = SimpleNamespace(port=1, spec=SimpleNamespace(probes=probes))
        self._began_ns = time.monotonic_ns()

    def meter(self) -> Instance:
        return self

    def read(self, _table: ProcessTable) -> Reading:
        return Reading(int(self.cpu_share * (time.monotonic_ns() - self._began_ns)), 1 << 20)

    def members(self, _table: ProcessTable) -> list[int]:
        return [os.getpid()]

    def run(self, _command: object) -> str:
        return self.flush_us


@dataclass
class Residents:
    """The node ``echo`` of every treatment, and one service that no treatment uses."""

    notes: list[str] = field(default_factory=list)
    idle_cpu: float = 0.0
    counted: int = -1
    lose: Mapping[str, str] = field(default_factory=dict)
    dies: Exception | None = None
    refuses: Exception | None = None
    says: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reported: dict[str, dict[str, dict[str, Any]]] = {}
        self._echo, self._idle = Instance(0.1), Instance(self.idle_cpu)

    def activate(self, name: str) -> None:
        self.notes.append(f"activate {name}")
        if self.refuses:
            raise self.refuses
        self.reported[name] = {"echo": dict(self.says)}

    def reset(self, name: str) -> None:
        self.notes.append(f"reset {name}")

    def active(self, _name: str) -> dict[str, Instance]:
        return {"echo": self._echo}

    def idle(self, _name: str) -> dict[str, Instance]:
        return {"other": self._idle}

    def instance(self, _name: str, _node: str) -> Instance:
        self.notes.append("probe")
        return self._echo

    def count(self, _name: str) -> int | None:
        return None if self.counted < 0 else self.counted

    def check_alive(self, _name: str) -> None:
        if self.dies:
            raise self.dies

    def lost(self, _name: str) -> Mapping[str, str]:
        return self.lose

    def stop(self) -> None:
        self.notes.append("stop")

    def start(self) -> None:
        self.notes.append("start")


@dataclass
class Generator:
    """Workers with a planted load; ``facts`` go to :func:`tests.load.planted.load_result`."""

    folder: Path
    notes: list[str]
    facts: dict[str, Any] = field(default_factory=dict)
    takes_s: float = 0.1
    fails: Exception | None = None
    pids: list[int] = field(default_factory=list)
    loads: int = 0

    def start(self) -> None:
        self.notes.append("workers start")
        self.pids = [os.getpid()]

    def close(self) -> None:
        self.notes.append("workers end")
        self.pids = []

    def run(
        self,
        workload: Workload,
        address: str,
        on_progress: Callable[[Progress], None] = lambda _: None,
        check: Callable[[], None] = lambda: None,
        allowed: Sequence[str] = (),  # noqa: ARG002
        start_ns: int = 0,  # noqa: ARG002
    ) -> LoadResult:
        assert address.startswith("http://127.0.0.1:")
        self.notes.append("load")
        self.loads += 1
        on_progress(Progress())
        facts = {"latency_s": 0.05, "cpu_ns": S // 10, **self.facts}
        if workload.windows is not None:
            facts["windows"] = instants_of(workload.arrivals, BEGIN_NS)  # type: ignore[arg-type]
        deadline = time.monotonic() + self.takes_s
        while time.monotonic() < deadline:
            time.sleep(0.01)
            try:
                check()
            except StopLoad as stop:
                facts["stopped"] = str(stop)
                break
        if self.fails:
            raise self.fails
        on_progress(Progress(finished=REQUESTS))
        done_s = 0.4 + np.arange(REQUESTS) * 0.01
        return load_result(self.folder / str(self.loads), done_s, **facts)


def treatment(name: str) -> Treatment:
    return Treatment(
        name=name,
        label=f"service {name}",
        levels={"service": name},
        stack=StackPlan(nodes=(Node(name="echo", service="echo"),)),
        workload=Workload(
            request=Request(node="echo"),
            arrivals=ClosedLoop(users=5, requests=REQUESTS, pacing_s=0.1),
        ),
        instruments=(Requests(), CpuSpeed(), ServerCount(), FlushProbe(node="echo")),
    )


def plan(blocks: int = 2, **words: Any) -> RunPlan:
    return RunPlan(
        experiment="test",
        title="a test",
        question="does it?",
        parameters={},
        factors={"service": ("a", "b")},
        treatments=(treatment("a"), treatment("b")),
        blocks=blocks,
        **{"seed": 5, "contrasts": (), **words},
    )


def bench(folder: Path, residents: Residents | None = None, **load: Any) -> Bench:
    """Return a bench for trials; ``load`` goes to the generator."""
    residents = residents or Residents()
    return Bench(
        residents=residents,  # type: ignore[arg-type]
        generator=Generator(folder, residents.notes, **load),  # type: ignore[arg-type]
        placement=placement(),
        cooldown_s=0.0,
    )


class Told:
    """A session under test: its events, its services' notes, its recording."""

    def __init__(
        self,
        root: Path,
        residents: Residents | None = None,
        of: RunPlan | None = None,
        **words: Any,
    ) -> None:
        load = {name: words.pop(name) for name in ("facts", "fails") if name in words}
        self.plan = of or plan(**words)
        self.residents = residents or Residents()
        self.bench = bench(root / "raw", self.residents, takes_s=0.0, **load)
        self.events: list[Event] = []
        self.writer = RunWriter.create(root / "runs", new_record(self.plan, BACKEND, placement()))

    def go(self, *blocks: int, attempt: int = 0) -> Run:
        session = Session(self.plan, self.writer, self.bench, self.events.append)
        chosen = blocks or range(self.plan.blocks)
        session.run({block: attempt if block == chosen[0] else 0 for block in chosen})
        return Run(self.writer.path)

    def of(self, kind: type[AnyEvent]) -> list[AnyEvent]:
        return [event for event in self.events if isinstance(event, kind)]
