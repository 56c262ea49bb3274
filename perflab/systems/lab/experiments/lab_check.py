"""What can this machine resolve? The lab measures things whose truth it knows."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from itertools import product
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from perflab.instruments import Instrument, Load, Observation, Scene, Sensor
from perflab.load.workload import ClosedLoop, OpenLoop, Request, Stage, Workload
from perflab.recordings import Contrast
from perflab.stacks.plan import Node, StackPlan
from perflab.stacks.spec import Value
from perflab.systems.lab.resolution import FACTOR, OVERLOAD, STALLED
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment
from perflab.trials.run_parameters import Requests, RunParameters, WarmupRequests

SOURCE = "planted by this experiment"
# The share of time in which the client is stopped, and its load in the rest.
STALLED_PART = 0.2
STALLED_USERS, STALLED_RPS, STALLED_S = 2, 200.0, 0.8
LONGEST_STALL_MS = 1e3 * STALLED_PART * STALLED_S
OVERLOAD_S = 0.2
TIMEOUT_S = 10.0
# Rounding to whole rounds of work may change a planted effect by this share.
ROUNDED_SHARE = 0.05
JOIN_S = 5.0


class _Stalling(Sensor["StalledClient"]):
    def __init__(self, settings: StalledClient, scene: Scene) -> None:
        super().__init__(settings, scene)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._act, daemon=True)
        self._count = 0

    def begin(self) -> None:
        """Start with a pause."""
        self._thread.start()

    def end(self) -> None:
        """Stop, and leave the workers running."""
        self._over.set()
        self._thread.join(JOIN_S)

    def observe(self, load: Load) -> Observation:  # noqa: ARG002
        """Return ``planted_stalls``, how often the workers were stopped."""
        return Observation({"planted_stalls": self._count})

    def _act(self) -> None:
        while not self._over.wait(self.settings.pause_ms / 1e3):
            self._signal(signal.SIGSTOP)
            try:
                self._over.wait(self.settings.stall_ms / 1e3)
            finally:
                self._signal(signal.SIGCONT)
            self._count += 1

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.scene.client_pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


class StalledClient(Instrument):
    """Stops the workers for ``stall_ms``, lets them run for ``pause_ms``, and repeats that."""

    at_work: ClassVar = _Stalling

    stall_ms: float = Field(gt=0, le=1000)
    pause_ms: float = Field(gt=0, le=60_000)


class LabCheckParameters(RunParameters):
    """Parameters of the lab's test of itself.

    A block holds one trial of each copy of the same service, one of a service that works longer by
    each factor of ``planted``, one with a load that no client can send, and two (a closed and an
    open loop) for each length of ``stalls_ms``, whose client is stopped a fifth of the time.
    """

    blocks: int = Field(
        default=48,
        ge=1,
        le=1000,
        description="how often everything is measured: a block holds one trial of each service, "
        "in random order",
    )
    copies: int = Field(
        default=6,
        ge=2,
        le=20,
        description="processes of one and the same service, which must not be called different",
    )
    planted: tuple[Annotated[float, Field(gt=1, le=10)], ...] = Field(
        default=(1.05, 1.1, 1.2),
        description="services that work longer by these factors, which must be found; 1.05: 5% "
        "longer",
    )
    work: int = Field(
        default=4000,
        ge=100,
        le=10_000_000,
        description="CPU work of a request, in rounds of SHA-256 (about 4,000 take a millisecond)",
    )
    requests: Requests = 150
    warmup_requests: WarmupRequests = 50
    overload_rps: float = Field(
        default=200_000.0,
        ge=0,
        le=1e6,
        description="requests a second in the trial that must be refused, more than a client can "
        "send; 0: no such trial",
    )
    stalls_ms: tuple[Annotated[float, Field(ge=10, le=LONGEST_STALL_MS)], ...] = Field(
        default=(20.0, 150.0),
        description="the client is stopped for so long, again and again, in trials that must be "
        "refused: one of a closed and one of an open loop for each; empty: no such trials",
    )

    @model_validator(mode="after")
    def _can_be_planted(self) -> LabCheckParameters:
        for factor in self.planted:
            rounded = round(self.work * factor) / self.work
            if abs(rounded - factor) > ROUNDED_SHARE * (factor - 1):
                raise ValueError(
                    f"planted = {factor:g} would be {rounded:g} in whole rounds of "
                    f"work = {self.work}; raise work"
                )
        return self


def copies(parameters: LabCheckParameters) -> list[str]:
    """Return the levels of the copies of the same service."""
    return [f"A{number + 1}" for number in range(parameters.copies)]


def slower(factor: float) -> str:
    """Return the level of a service that works longer by a factor."""
    return f"+{(factor - 1) * 100:.10g}%"


def _treatments(parameters: LabCheckParameters) -> list[Treatment]:
    plain = ClosedLoop(
        users=1, requests=parameters.requests, warmup_requests=parameters.warmup_requests
    )
    work = [(copy, parameters.work) for copy in copies(parameters)]
    for factor in sorted(parameters.planted):
        work.append((slower(factor), round(parameters.work * factor)))
    treatments = [_treatment(level, rounds, plain) for level, rounds in work]
    if parameters.overload_rps:
        stage = Stage(rate=parameters.overload_rps, duration_s=OVERLOAD_S)
        treatments.append(_treatment(OVERLOAD, 0, OpenLoop(stages=(stage,))))
    return [*treatments, *_stalled(parameters)]


def _stalled(parameters: LabCheckParameters) -> Iterator[Treatment]:
    """Yield the trials whose client is stopped: every length, in a closed and in an open loop."""
    stage = Stage(rate=STALLED_RPS, duration_s=STALLED_S)
    loops: dict[str, ClosedLoop | OpenLoop] = {
        "closed": ClosedLoop(users=STALLED_USERS, duration_s=STALLED_S),
        "open": OpenLoop(stages=(stage,)),
    }
    for stall_ms, loop in product(sorted(parameters.stalls_ms), loops):
        fault = StalledClient(stall_ms=stall_ms, pause_ms=stall_ms * (1 / STALLED_PART - 1))
        level = f"{STALLED}: {loop} loop, {stall_ms:g} ms"
        treatment = _treatment(level, parameters.work, loops[loop], STALLED)
        yield treatment.model_copy(update={"instruments": (*treatment.instruments, fault)})


def _treatment(
    level: str, rounds: int, arrivals: ClosedLoop | OpenLoop, process: str = ""
) -> Treatment:
    """Return a treatment; those that name one ``process`` load the same one."""
    settings: dict[str, Value] = {"work": rounds, "name": process or level}
    return Treatment(
        name=f"{FACTOR}={level}",
        label=level,
        levels={FACTOR: level},
        # The name gives each level a process of its own, as any treatment has. Two processes of one
        # program can differ in speed, and that must show here as elsewhere.
        stack=StackPlan(nodes=(Node(name="echo", service="echo", settings=settings),)),
        workload=Workload(
            request=Request(node="echo", expect_bytes=100),
            arrivals=arrivals,
            timeout_s=TIMEOUT_S,
        ),
    )


def _contrasts(parameters: LabCheckParameters) -> list[Contrast]:
    first, *others = copies(parameters)
    of_copies = [
        Contrast(
            name=f"{other} against {first}",
            claim=f"{other} and {first} are one and the same service",
            response="mean_ms",
            numerator={FACTOR: other},
            denominator={FACTOR: first},
            published_direction="none",
            source=SOURCE,
        )
        for other in others
    ]
    of_slower = [
        Contrast(
            name=f"{slower(factor)} against {first}",
            claim=f"a service that works {slower(factor)[1:]} longer is slower by that much",
            response="mean_ms",
            numerator={FACTOR: slower(factor)},
            denominator={FACTOR: first},
            published_ratio=factor,
            source=SOURCE,
        )
        for factor in sorted(parameters.planted)
    ]
    return [*of_copies, *of_slower]


EXPERIMENT = Experiment(
    name="lab_check",
    title="The lab, tested by itself",
    question="How often does the lab call identical services different, does it find effects that "
    "were planted, does it refuse a client that cannot keep up or stands still, and what can it "
    "resolve here?",
    parameters=LabCheckParameters,
    treatments=_treatments,
    contrasts=_contrasts,
)
