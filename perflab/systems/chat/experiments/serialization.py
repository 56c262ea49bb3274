"""What does a codec cost per message, and what did the published microbenchmark really count?"""

from __future__ import annotations

from itertools import product
from typing import Literal

from pydantic import Field

from perflab.analysis.zones import no_difference
from perflab.load.workload import ClosedLoop, Request, Workload
from perflab.recordings import Contrast, published_value
from perflab.stacks.plan import Node, StackPlan
from perflab.systems.chat.stacks import Codec, CodecLevels
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment
from perflab.trials.run_parameters import RunParameters

Operation = Literal["serialize", "deserialize", "serialize_values", "deserialize_values"]
MessageName = Literal["published", "chat"]

CODECS: tuple[Codec, ...] = ("json", "orjson", "msgspec", "protobuf", "msgpack")
# Operations of one request: enough that it takes milliseconds even with the fastest codec, because
# shorter requests would measure the client. The phase ``op`` is the time of 1000 operations.
LOOPS = 10_000
RESPONSE = "phase_op_p50_ms"
FACTORS = ("codec", "operation", "message")
SCENARIOS = {"json": "json", "orjson": "orjson", "protobuf": "protobuf (upb)"}
# Bytes of one message. Every answer must state them, so a codec that writes something else fails.
SIZES = {
    "published": {"json": 132, "orjson": 116, "msgspec": 116, "protobuf": 64, "msgpack": 93},
    "chat": {"json": 184, "orjson": 175, "msgspec": 175, "protobuf": 115, "msgpack": 155},
}
STUDY = "chat study, microbenchmark table"
PAIRS = (("json", "orjson"), ("json", "protobuf"), ("orjson", "protobuf"))
SUBJECTS = {"serialize": "writing", "deserialize": "reading"}
# The study's own message and codecs.
SHORT = {
    "blocks": 8,
    "codec": list(SCENARIOS), "operation": ["serialize", "deserialize"], "message": ["published"],
}  # fmt: skip


class SerializationParameters(RunParameters):
    """Parameters of the codec microbenchmark; a trial's response is the median of repetitions."""

    codec: CodecLevels = CODECS
    operation: tuple[Operation, ...] = Field(
        default=("serialize", "deserialize", "serialize_values", "deserialize_values"),
        min_length=1,
        description="levels to compare: writing or reading a message; with _values, its values are "
        "made or read, too",
    )
    message: tuple[MessageName, ...] = Field(
        default=("published", "chat"),
        min_length=1,
        description="levels to compare: the published study's message, or the chat service's",
    )
    requests: int = Field(
        default=20,
        ge=6,
        le=1_000_000,
        description="repetitions in each trial, each of 10,000 operations",
    )
    warmup_requests: int = Field(
        default=3,
        ge=0,
        le=1_000_000,
        description="warm-up repetitions before these, recorded apart",
    )


def _levels(parameters: SerializationParameters) -> dict[str, tuple[str, ...]]:
    return {name: getattr(parameters, name) for name in FACTORS}


def _treatments(parameters: SerializationParameters) -> list[Treatment]:
    # One process serves all treatments, so that no codec is favoured by how a process started.
    plan = StackPlan(nodes=(Node(name="chat", service="chat"),))
    arrivals = ClosedLoop(
        users=1, requests=parameters.requests, warmup_requests=parameters.warmup_requests
    )
    treatments = []
    for codec, operation, message in product(*_levels(parameters).values()):
        size = SIZES[message][codec]
        query = f"codec={codec}&op={operation}&message={message}&loops={LOOPS}"
        request = Request(node="chat", path=f"/codec-bench?{query}", expect_body=f'"bytes":{size},')
        factors = {"codec": codec, "operation": operation, "message": message}
        treatments.append(
            Treatment(
                name=",".join(f"{factor}={level}" for factor, level in factors.items()),
                label=f"{codec}, {operation.replace('_', ' with ')}, {message}",
                levels={**factors, "bytes": str(size)},
                stack=plan,
                workload=Workload(request=request, arrivals=arrivals),
            )
        )
    return treatments


def _contrasts(parameters: SerializationParameters) -> list[Contrast]:
    levels = _levels(parameters)
    if "published" not in levels["message"]:
        return []
    return [
        _contrast(slow, fast, operation)
        for operation, (slow, fast) in product(levels["operation"], PAIRS)
        if {slow, fast} <= set(levels["codec"])
    ]


def published_total_ms(codec: str, step: str) -> float:
    """Return the published time of all operations of a codec, in ms."""
    return published_value("chat", "microbenchmark", SCENARIOS[codec], f"{step}_time")


def _contrast(slow: str, fast: str, operation: str) -> Contrast:
    step, _, with_values = operation.partition("_")
    slow_ms, fast_ms = (published_total_ms(codec, step) for codec in (slow, fast))
    ratio = slow_ms / fast_ms
    is_equal = no_difference(ratio)
    what = f"{step} with the values made or read" if with_values else step
    sides = {"operation": operation, "message": "published"}
    is_primary = (slow, fast) == ("json", "orjson") and operation in SUBJECTS
    return Contrast(
        name=f"{slow} against {fast}, {operation}",
        claim=f"{what}: {slow} takes {'as long as' if is_equal else f'{ratio:.3g} times'} {fast}",
        response=RESPONSE,
        numerator={"codec": slow, **sides},
        denominator={"codec": fast, **sides},
        published_ratio=ratio,
        published_direction="none" if is_equal else "greater",
        source=f"{STUDY} ({slow_ms:,.0f} against {fast_ms:,.0f} ms)",
        asks="orjson faster than json?" if is_primary else "",
        subject=SUBJECTS.get(operation, ""),
    )


EXPERIMENT = Experiment(
    name="serialization",
    title="Codecs: time and bytes per message",
    question="What does each codec cost per message and how many bytes does it make, and how many "
    "operations do the published totals stand for?",
    parameters=SerializationParameters,
    main_job=SHORT,
    treatments=_treatments,
    contrasts=_contrasts,
)
