"""What can this machine resolve? The lab measures things whose truth it knows."""

from __future__ import annotations

from pydantic import Field, field_validator

from perflab.experiments.experiment import Experiment, RunParameters
from perflab.load.workload import ClosedLoop, OpenLoop, Request, Stage, Workload
from perflab.recordings import Contrast
from perflab.stacks.plan import Node, StackPlan
from perflab.trials.plan import Treatment

SOURCE = "planted by this experiment"
FACTOR = "service"
OVERLOAD = "overload"


class LabCheckParameters(RunParameters):
    """Parameters of the lab's test of itself.

    In every block one trial of each of ``copies`` processes of one and the same service, one of a
    service that works longer by each factor of ``planted``, and one whose open loop asks for
    ``overload_rps``, more than any client can send (0: none). ``work`` is the CPU work of a
    request, in rounds of SHA-256 (about 4,000 to the millisecond).
    """

    blocks: int = Field(default=48, ge=1, le=1000)
    copies: int = Field(default=6, ge=2, le=20)
    planted: tuple[float, ...] = (1.05, 1.1, 1.2)
    work: int = Field(default=4000, ge=100, le=10_000_000)
    requests: int = Field(default=150, ge=10, le=1_000_000)
    warmup_requests: int = Field(default=50, ge=0, le=1_000_000)
    overload_rps: float = Field(default=200_000.0, ge=0, le=1e6)
    overload_s: float = Field(default=0.2, gt=0, le=10)
    timeout_s: float = Field(default=10.0, gt=0, le=600)

    @field_validator("planted")
    @classmethod
    def _slower(cls, planted: tuple[float, ...]) -> tuple[float, ...]:
        wrong = [factor for factor in planted if not 1 < factor <= 10]
        if wrong:
            raise ValueError(
                f"{wrong[0]:g} is not a slowdown; 1.05 means 5% slower, 10 is the most"
            )
        return tuple(sorted(set(planted)))


def copies(parameters: LabCheckParameters) -> list[str]:
    """Return the levels that are one and the same service."""
    return [f"A{number + 1}" for number in range(parameters.copies)]


def slower(factor: float) -> str:
    """Return the level of a service that works longer by a factor."""
    return f"+{(factor - 1) * 100:g}%"


def _levels(parameters: LabCheckParameters) -> dict[str, tuple[str, ...]]:
    levels = [*copies(parameters), *map(slower, parameters.planted)]
    return {FACTOR: tuple([*levels, OVERLOAD] if parameters.overload_rps else levels)}


def _treatments(parameters: LabCheckParameters) -> list[Treatment]:
    plain = ClosedLoop(
        users=1, requests=parameters.requests, warmup_requests=parameters.warmup_requests
    )
    work = dict.fromkeys(copies(parameters), parameters.work)
    work |= {slower(factor): round(parameters.work * factor) for factor in parameters.planted}
    treatments = [_treatment(level, rounds, plain, parameters) for level, rounds in work.items()]
    if parameters.overload_rps:
        stage = Stage(rate=parameters.overload_rps, duration_s=parameters.overload_s)
        treatments.append(_treatment(OVERLOAD, 0, OpenLoop(stages=(stage,)), parameters))
    return treatments


def _treatment(
    level: str, rounds: int, arrivals: ClosedLoop | OpenLoop, parameters: LabCheckParameters
) -> Treatment:
    return Treatment(
        name=f"{FACTOR}={level}",
        label=level,
        levels={FACTOR: level},
        # The name makes it a process of its own, as any treatment has: two processes of one
        # program can differ in speed, and that must show here as it does elsewhere.
        stack=StackPlan(
            nodes=(Node(name="echo", service="echo", settings={"work": rounds, "name": level}),)
        ),
        workload=Workload(
            request=Request(node="echo", expect_bytes=100),
            arrivals=arrivals,
            timeout_s=parameters.timeout_s,
        ),
    )


def _contrasts(parameters: LabCheckParameters) -> list[Contrast]:
    first, *others = copies(parameters)
    same = [
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
    planted = [
        Contrast(
            name=f"{slower(factor)} against {first}",
            claim=f"a service that works {slower(factor)[1:]} longer is slower by that much",
            response="mean_ms",
            numerator={FACTOR: slower(factor)},
            denominator={FACTOR: first},
            published_ratio=factor,
            source=SOURCE,
        )
        for factor in parameters.planted
    ]
    return [*same, *planted]


EXPERIMENT = Experiment(
    name="lab_check",
    title="The lab, tested by itself",
    question="How often does the lab call identical services different, does it find effects that "
    "were planted, does it refuse a client that cannot keep up, and what can it resolve here?",
    parameters=LabCheckParameters,
    treatments=_treatments,
    factors=_levels,
    contrasts=_contrasts,
)
