"""How do latency and volume of the chat service change with each step of the published ladder?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import Field, field_validator

from perflab.errors import ParameterError
from perflab.experiments.experiment import Experiment
from perflab.host.placing import placement
from perflab.numerals import counted
from perflab.recordings import Contrast, Remark, published_value
from perflab.systems.chat import service
from perflab.systems.chat.changes import (
    CHANGES,
    contrasts,
    ping_contrasts,
)
from perflab.systems.chat.published_load import (
    as_published,
    has_unknown_delay,
    load_warnings,
    published_exponent,
    too_few_pings,
    volume_differences,
)
from perflab.systems.chat.responses import STEADY
from perflab.systems.chat.rungs import RUNGS, SCENARIOS, rung_named
from perflab.systems.chat.service import ChatParameters, Rung, load_s
from perflab.trials.plan import Treatment

SUBSET = (
    "json", "orjson", "protobuf", "once", "json_login", "json_spread", "uvloop",
    "asyncio_no_deflate", "no_deflate", "no_deflate_425", "slow_joins_425",
    "no_deflate_425_spread", "best_425",
)  # fmt: skip
ONE_CORE = "this machine gives the services one core: a process on it cannot migrate"
# With fewer no single one of the claims that 19 rungs make at once could be shown.
PUBLISHED_BLOCKS = 10
# What a trial takes besides its load: its reset, probes and writing.
BETWEEN_TRIALS_S = 10.0


class ChatLadderParameters(ChatParameters):
    """Parameters of the ladder.

    With ``preset`` ``published`` its rungs are the 19 published rows at the published load, their
    pings are compared with the published sizes, and a run takes most of a day. Rungs without login
    load then keep logins out by first delays of users times ``join_s``, as in the study's later
    rows (its earlier ones do not say); else all act together once logins are over. ``ramp_s`` goes
    with cheap logins (``bcrypt_rounds``): a search for the most users spends its time on the
    plateau.
    """

    rungs: tuple[str, ...] = Field(
        default=SUBSET,
        min_length=1,
        description="configurations to compare, by name: json, best, best_800 (with 800 users); an "
        "unknown name is answered with all of them",
    )
    ramp_s: float | None = Field(
        default=None,
        gt=0,
        le=3600,
        description="let all users join within so many seconds, where messages start later; none: "
        "as join_s says",
    )

    @classmethod
    def published_values(cls) -> dict[str, Any]:
        """Return what the preset sets."""
        return {
            **super().published_values(),
            "rungs": tuple(SCENARIOS),
            "blocks": PUBLISHED_BLOCKS,
        }

    @field_validator("rungs")
    @classmethod
    def _are_known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            try:
                rung_named(name)
            except ParameterError as error:
                raise ValueError(error.problems[0]) from None
        return names


def _rungs(parameters: ChatLadderParameters) -> dict[str, Rung]:
    return {name: _begun(parameters, rung_named(name)) for name in dict.fromkeys(parameters.rungs)}


def _begun(parameters: ChatLadderParameters, rung: Rung) -> Rung:
    """Return a rung with the delays that the parameters give it."""
    changes: dict[str, Any] = {"ramp_s": parameters.ramp_s}
    if rung.first_delay == "together" and parameters.preset == "published":
        changes["first_delay"] = "scaled"
    return rung.model_copy(update=changes)


def _treatments(parameters: ChatLadderParameters) -> list[Treatment]:
    return service.treatments(parameters, _rungs(parameters), _scenarios(parameters))


def _scenarios(parameters: ChatLadderParameters) -> Mapping[str, str]:
    """Return which rungs are rows of the study: those at its load, with as many users."""
    return {
        name: SCENARIOS[name]
        for name, rung in _rungs(parameters).items()
        if name in SCENARIOS and as_published(parameters, rung, name)
    }


def _contrasts(parameters: ChatLadderParameters) -> list[Contrast]:
    have = _rungs(parameters)
    bound = len(placement().services) == 1
    refusals = {change.after: ONE_CORE for change in CHANGES if change.binds and bound}
    rows = _scenarios(parameters)
    unstated = [name for name in rows if has_unknown_delay(name)]

    def too_few(rungs: Collection[Rung], share: int) -> str:
        return too_few_pings(parameters, rungs, share)

    return [
        *contrasts(have, refusals),
        *ping_contrasts(have, rows, unstated, refusals, too_few),
        *_cost_contrasts(set(have)),
        *_volume_contrasts(set(have), parameters),
        *_second_core(set(have)),
    ]


def _cost_contrasts(have: set[str]) -> list[Contrast]:
    """Return what a step saves, as claimed: CPU per message, bytes on the wire."""
    cpu, wire = ("cpu_us_per_message", "smaller"), ("wire_bytes_per_message", "none")
    words = {cpu: "CPU per message", wire: "bytes on the wire"}
    wanted = [
        ("no_deflate", "uvloop", cpu, "chat study, claim 3",
         "turning permessage-deflate off saves CPU per message (experiment 'profile' looks at "
         "sending alone)"),
        ("once", "json", cpu, "chat study, what profiling found",
         "serializing a message once instead of once for every receiver saves CPU"),
        ("protobuf", "orjson", cpu, "chat study, claim 1",
         "protobuf costs less CPU per message than orjson"),
        ("uvloop", "protobuf", cpu, "chat study, claim 2", "uvloop saves CPU per message"),
        ("no_deflate", "uvloop", wire, "chat study, claim 7",
         "compression gains little to nothing for these messages"),
    ]  # fmt: skip
    return [
        Contrast(
            name=f"{after} against {before}, {words[cost]}",
            claim=claim,
            response=cost[0],
            numerator={"rung": after},
            denominator={"rung": before},
            published_direction=cost[1],
            source=source,
        )
        for after, before, cost, source, claim in wanted
        if {after, before} <= have
    ]


def _volume_contrasts(have: set[str], parameters: ChatLadderParameters) -> list[Contrast]:
    if not {"no_deflate", "no_deflate_425"} <= have:
        return []
    compared = not volume_differences(parameters)
    more = RUNGS["no_deflate_425"].users / RUNGS["no_deflate"].users
    ratio = more ** published_exponent()
    return [
        Contrast(
            name="volume at 425 users against 250",
            claim="volume grows with the square of the users",
            response="messages_per_s",
            numerator={"rung": "no_deflate_425"},
            denominator={"rung": "no_deflate"},
            published_ratio=ratio if compared else None,
            published_direction="greater",
            source="chat study, claim 5 (volume against users)",
            set_by_load="the share of users whom a message reaches was derived from the published "
            "volume itself",
        )
    ]


def _second_core(have: set[str]) -> list[Contrast]:
    if not {"protobuf", "json"} <= have:
        return []
    before, after = (
        published_value(service.STUDY, "CPU", scenario, "second_core_cpu")
        for scenario in ("before protobuf", "protobuf")
    )
    return [
        Contrast(
            name="second core",
            claim="protobuf's C code moves work to a second core: to threads other than the event "
            "loop's, for nothing else could run there",
            response="beside_loop_cpu_share_chat",
            scale="difference",
            numerator={"rung": "protobuf"},
            denominator={"rung": "json"},
            published_direction="greater",
            source=f"chat study, CPU (second core from {before:g}% to {after:g}%)",
        )
    ]


def _warnings(parameters: ChatLadderParameters) -> list[Remark]:
    rungs = _rungs(parameters)
    warnings = [*load_warnings(parameters, rungs, SCENARIOS), *_length(parameters, rungs)]
    if parameters.ramp_s is not None:
        text = (
            f"where logins are over before messages start, users join within "
            f"{parameters.ramp_s:g} s; their actions keep the published intervals"
        )
        warnings.append(Remark(code="chat.ramp", text=text))
    return warnings


def _length(parameters: ChatLadderParameters, rungs: Mapping[str, Rung]) -> list[Remark]:
    """Say how long a run takes that has the published load."""
    if parameters.preset != "published":
        return []
    block_s = sum(load_s(parameters, rung) + BETWEEN_TRIALS_S for rung in rungs.values())
    text = (
        f"with this load a block of {counted(len(rungs), 'rung')} takes about "
        f"{_in_words(block_s)}, the run of {counted(parameters.planned_blocks, 'block')} about "
        f"{_in_words(block_s * parameters.planned_blocks)}"
    )
    return [Remark(code="chat.length", text=text)]


def _in_words(seconds: float) -> str:
    """Return ``50 minutes`` or ``16 hours``."""
    if seconds < 2 * 3600:
        return counted(round(seconds / 60), "minute")
    return counted(round(seconds / 3600), "hour")


EXPERIMENT = Experiment(
    name="chat_ladder",
    title="Chat: the ladder from JSON to the highest volume held",
    question="What does each single change do to the latency of deliveries, and how many messages "
    "a second are held within the targets?",
    parameters=ChatLadderParameters,
    steady=STEADY,
    treatments=_treatments,
    factors=lambda parameters: service.factors(
        parameters, _rungs(parameters), _scenarios(parameters)
    ),
    contrasts=_contrasts,
    warnings=_warnings,
)
