"""Which of two or more variants of a service of one's own is slower, and by how much?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perflab.instruments import STANDARD
from perflab.recordings import Contrast, Remark
from perflab.recordings.responses import named
from perflab.stacks.plan import Node, StackPlan
from perflab.systems.custom.descriptions import Start, described
from perflab.systems.custom.instruments import RightAnswer, ServiceCost
from perflab.systems.custom.parameters import OwnServiceParameters
from perflab.systems.custom.responses import RESPONSES
from perflab.systems.custom.revisions import is_dirty
from perflab.systems.custom.variants import Variant
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Target, Treatment

FACTOR = "variant"
# The verdict has its sentences in this order.
COMPARED = (
    "throughput_rps", "mean_ms", "p50_ms", "p99_ms", "service_cpu_us_per_request",
    "service_memory_bytes", "failure_share",
)  # fmt: skip
DIFFERENCES = ("failure_share",)
OF_THE_SERVICE = ("service_cpu_us_per_request", "service_memory_bytes")
SET_BY_LOAD = "an open loop sends at the rate that was asked for, whatever the service does"


def _treatments(parameters: OwnServiceParameters) -> list[Treatment]:
    return [_treatment(variant, parameters) for variant in parameters.parsed_variants]


def _treatment(variant: Variant, parameters: OwnServiceParameters) -> Treatment:
    target: Target | None = None
    nodes: tuple[Node, ...] = ()
    if variant.kind == "url":
        target = Target(url=variant.place, allowed=parameters.allow_targets)
    else:
        nodes = (Node(name=variant.name, service=described(variant, _start(parameters))),)
    check = RightAnswer(
        variant=variant.name,
        target=target.url if target else "",
        allowed=parameters.allow_targets,
    )
    return Treatment(
        name=f"{FACTOR}={variant.name}",
        label=variant.label,
        levels={FACTOR: variant.name},
        stack=StackPlan(nodes=nodes),
        workload=parameters.workload(variant.name if nodes else ""),
        instruments=(check, *STANDARD, ServiceCost()),
        target=target,
    )


def _start(parameters: OwnServiceParameters) -> Start:
    return Start(
        folder=parameters.begins_in,
        command=parameters.command,
        prepare=parameters.prepare,
        health=parameters.health,
        workload_path=parameters.path,
        timeout_s=parameters.start_timeout_s,
    )


def _contrasts(parameters: OwnServiceParameters) -> list[Contrast]:
    first, *others = parameters.parsed_variants
    return [
        _contrast(other, first, response, parameters)
        for other in others
        for response in COMPARED
        if not (response in OF_THE_SERVICE and "url" in (first.kind, other.kind))
    ]


def _contrast(
    other: Variant, first: Variant, response: str, parameters: OwnServiceParameters
) -> Contrast:
    declared = named(RESPONSES, response)
    assert declared is not None
    return Contrast(
        name=f"{other.name} against {first.name}: {response}",
        claim=f"{other.name} against {first.name}: {declared.title}",
        response=response,
        scale="difference" if response in DIFFERENCES else "ratio",
        numerator={FACTOR: other.name},
        denominator={FACTOR: first.name},
        set_by_load=SET_BY_LOAD if parameters.rate and response == "throughput_rps" else "",
    )


def _warnings(parameters: OwnServiceParameters) -> Sequence[Remark]:
    variants = parameters.parsed_variants
    texts = [
        f"{place} has changes that are not committed: they are in no revision that was measured"
        for place in dict.fromkeys(variant.place for variant in variants if variant.kind == "git")
        if is_dirty(Path(place))
    ]
    commands = [variant.name for variant in variants if variant.kind == "command"]
    if commands and parameters.folder:
        texts.append(
            f"what {', '.join(commands)} is made of is not recorded: commit it and name a revision "
            "(git:REPOSITORY@REVISION)"
        )
    urls = [variant.name for variant in variants if variant.kind == "url"]
    if urls:
        texts.append(
            f"{', '.join(urls)} runs already: it is not started afresh for every block, so that a "
            "difference of a percent or two may be that of its process; its CPU and memory are "
            "not known, and are compared with nothing"
        )
    return [Remark(code="own.variants", text=text) for text in texts]


EXPERIMENT = Experiment(
    name="custom_service",
    title="Variants of a service, side by side",
    question="Which variant is slower, takes more CPU or memory, or fails more often, by how much, "
    "and how sure is that?",
    parameters=OwnServiceParameters,
    treatments=_treatments,
    factors=lambda parameters: {
        FACTOR: tuple(variant.name for variant in parameters.parsed_variants)
    },
    contrasts=_contrasts,
    warnings=_warnings,
)
