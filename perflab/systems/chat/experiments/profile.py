"""Where does the chat server's time go, and what does looking at it cost?"""

from __future__ import annotations

from itertools import product
from typing import Literal

from pydantic import Field

from perflab.instruments import Profiler
from perflab.recordings import Contrast, published_value, stated
from perflab.systems.chat import stacks
from perflab.systems.chat.stacks import (
    STUDY,
    ActionSeconds,
    ChatParameters,
    CodecLevels,
    JoinSeconds,
    PlateauSeconds,
    Rung,
)
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment

NODE = "chat"
FACTOR = "profiler"
COST = "assumption of every profile: looking does not change what is seen"
RESPONSES = {
    f"plateau_cpu_share_{NODE}": "the server's CPU",
    "delivery_p50_ms": "the median latency of deliveries",
    "delivery_p95_ms": "the p95 of their latency",
}
Switch = Literal["on", "off"]
Loop = Literal["asyncio", "uvloop"]

# The watched functions, as patterns of py-spy's frames. C functions have no frames: their time is
# in the Python function that called them, zlib's in the compressing step and a socket's in the
# write. A serializer that is all C (orjson, msgspec, msgpack) counts to its caller, so the caller
# is watched for every codec.

# Compressing messages. Both implementations share the extension of the package websockets.
DEFLATE = r"^PerMessageDeflate\.encode \((?:.*/)?permessage_deflate\.py\)$"
# Writing messages to WebSockets, down to the sockets: the task that empties a connection's queue,
# what it calls (a chain that changes while it is read loses its outer functions), and the event
# loop, which writes the rest that a full socket did not take. (uvloop writes in C at the end of its
# turn; no pattern can match that part.)
SEND = "|".join((
    r"^Connection\.write \((?:.*/)?hub\.py\)$",
    r"^WebSocket\w*Protocol\.(?:asgi_)?send \((?:.*/)?websockets/\S+\.py\)$",
    r"^Frame\.(?:write|serialize) \((?:.*/)?websockets/\S+\.py\)$",
    DEFLATE,
    r"^_SelectorSocketTransport\._write_\w+ \((?:.*/)?selector_events\.py\)$",
))  # fmt: skip
# Making frames and putting them into the receivers' queues.
SERIALIZE = r"^Hub\._deliver \((?:.*/)?hub\.py\)$|^Coder\.encode \((?:.*/)?codecs\.py\)$"


class ProfileParameters(ChatParameters):
    """Parameters of the profiles of the chat server.

    ``codec``, ``loop``, ``deflate`` and ``profiler`` are factors. Users act far more often than the
    published ones, so that a few dozen users make enough load for a profile within seconds; logins
    cost nothing.
    """

    plateau_s: PlateauSeconds = 4.0
    join_s: JoinSeconds = 0.02
    action_s: ActionSeconds = 0.5
    codec: CodecLevels = ("json", "orjson")
    loop: tuple[Loop, ...] = Field(
        default=("asyncio",),
        min_length=1,
        description="levels to compare: the service's event loop; a run of both shows what uvloop "
        "saves",
    )
    deflate: tuple[Switch, ...] = Field(
        default=("off",),
        min_length=1,
        description="levels to compare: messages compressed or not; a run of both shows what "
        "compression costs in sending",
    )
    profiler: tuple[Switch, ...] = Field(
        default=("off", "on"),
        min_length=1,
        description="levels to compare: with the profiler or without; a run of both shows what the "
        "profiler costs",
    )
    users: int = Field(default=70, ge=1, le=2000, description="users of the chat service")
    rate_hz: int = Field(
        default=100, ge=1, le=1000, description="samples a second that the profiler takes"
    )


def _name(codec: str, loop: str, deflate: str, profiler: str = "off") -> str:
    parts = [
        codec,
        loop if loop != "asyncio" else "",
        "deflate" if deflate == "on" else "",
        "profiled" if profiler == "on" else "",
    ]
    return "_".join(filter(None, parts))


def _rungs(parameters: ProfileParameters) -> dict[str, Rung]:
    """Return the rungs of the chat service by name; a profiled rung differs only in its name."""
    return {
        _name(codec, loop, deflate, profiler): Rung(
            codec=codec,
            loop=loop,
            deflate=deflate,
            serialize="per_send",
            # Logins would only be noise at the start; another experiment studies them.
            login_hash="none",
            first_delay="spread",
            users=parameters.users,
        )
        for codec, loop, deflate, profiler in product(
            parameters.codec, parameters.loop, parameters.deflate, parameters.profiler
        )
    }


def _treatments(parameters: ProfileParameters) -> list[Treatment]:
    treatments = []
    for treatment in stacks.treatments(parameters, _rungs(parameters)):
        levels, instruments = {**treatment.levels, FACTOR: "off"}, treatment.instruments
        if levels["rung"].endswith("_profiled"):
            watch = {"send": SEND, "serialize": SERIALIZE}
            if levels["deflate"] == "on":
                watch["deflate"] = DEFLATE
            profiler = Profiler(node=NODE, rate_hz=parameters.rate_hz, watch=watch, per="delivery")
            levels[FACTOR], instruments = "on", (*instruments, profiler)
        changes = {"levels": levels, "instruments": instruments}
        treatments.append(treatment.model_copy(update=changes))
    return treatments


def _contrasts(parameters: ProfileParameters) -> list[Contrast]:
    return [*_sending(parameters), *_loops(parameters), *_costs(parameters)]


def _costs(parameters: ProfileParameters) -> list[Contrast]:
    if set(parameters.profiler) != {"on", "off"}:
        return []
    return [
        Contrast(
            name=f"profiler on against off, {_name(*server)}: {response}",
            claim=f"profiling at {parameters.rate_hz} Hz leaves {what} as it is "
            f"({_in_words(*server)})",
            response=response,
            numerator={"rung": _name(*server, "on")},
            denominator={"rung": _name(*server)},
            published_direction="none",
            source=COST,
        )
        for server in product(parameters.codec, parameters.loop, parameters.deflate)
        for response, what in RESPONSES.items()
    ]


def _in_words(*server: str) -> str:
    return _name(*server).replace("_", " with ")


def _sending(parameters: ProfileParameters) -> list[Contrast]:
    if "on" not in parameters.profiler or set(parameters.deflate) != {"on", "off"}:
        return []
    # The published seconds include cProfile's own cost of every call, so they give no size.
    without_s, with_s = (
        published_value(STUDY, "CPU", f"sending, {how} deflate", "sending_time")
        for how in ("without", "with")
    )
    return [
        Contrast(
            name=f"sending without deflate against with, {_name(codec, loop, 'off')}",
            claim=f"{stated(STUDY, 'claim 3')} ({_in_words(codec, loop, 'off')})",
            response="profile_send_us_per_message",
            numerator={"rung": _name(codec, loop, "off", "on")},
            denominator={"rung": _name(codec, loop, "on", "on")},
            published_direction="smaller",
            source=f"chat study, claim 3 (sending {without_s:g} of {with_s:g} s)",
        )
        for codec, loop in product(parameters.codec, parameters.loop)
    ]


def _loops(parameters: ProfileParameters) -> list[Contrast]:
    """Return the contrasts of uvloop, from trials without a profiler if the run has them."""
    if set(parameters.loop) != {"asyncio", "uvloop"}:
        return []
    profiler = "off" if "off" in parameters.profiler else "on"
    return [
        Contrast(
            name=f"uvloop against asyncio, {_name(codec, 'asyncio', deflate)}",
            claim=f"{stated(STUDY, 'event loop, profile')} "
            f"({_in_words(codec, 'asyncio', deflate)})",
            response="cpu_us_per_message",
            numerator={"rung": _name(codec, "uvloop", deflate, profiler)},
            denominator={"rung": _name(codec, "asyncio", deflate, profiler)},
            published_direction="smaller",
            source="chat study, what profiling found",
        )
        for codec, deflate in product(parameters.codec, parameters.deflate)
    ]


EXPERIMENT = Experiment(
    name="profile",
    title="Profile of the chat server, and what profiling costs",
    question="In which functions does the chat server spend its time, what changes with the codec "
    "or compression, and what does it cost to look?",
    parameters=ProfileParameters,
    treatments=_treatments,
    contrasts=_contrasts,
)
