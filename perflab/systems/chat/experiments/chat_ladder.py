"""How do latency and volume of the chat service change with each step of the published ladder?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import Field, field_validator

from perflab.errors import ParameterError
from perflab.host.placing import placement
from perflab.recordings import Contrast, Remark, published_value
from perflab.statistics.in_words import counted
from perflab.systems.chat import service
from perflab.systems.chat.changes import (
    CHANGES,
    contrasts,
    ping_contrasts,
)
from perflab.systems.chat.published_load import (
    differences,
    has_unknown_delay,
    load_warnings,
    too_few_pings,
    volume_differences,
)
from perflab.systems.chat.responses import STEADY
from perflab.systems.chat.rungs import RUNGS, SCENARIOS, rung_named
from perflab.systems.chat.service import ChatParameters, Rung, load_s
from perflab.trials.experiment import Experiment
from perflab.trials.plan import Treatment

SUBSET = (
    "json", "orjson", "protobuf", "once", "json_login", "json_spread", "uvloop",
    "asyncio_no_deflate", "no_deflate", "no_deflate_425", "slow_joins_425",
    "no_deflate_425_spread", "best_425",
)  # fmt: skip
ONE_CORE = "this machine gives the services one core: a process on it cannot migrate"
# With fewer blocks none of the claims that 19 rungs make at once could be shown.
PUBLISHED_BLOCKS = 10
# The time that a trial takes besides its load: reset, probes and writing.
BETWEEN_TRIALS_S = 10.0


class ChatLadderParameters(ChatParameters):
    """Parameters of the ladder.

    With ``preset`` ``published`` the rungs are the 19 published rows at the published load, their
    pings are compared with the published sizes, and a run takes most of a day. In rungs without
    login load, the first delay then is users times ``join_s``, as in the study's later rows (the
    study does not state that of its earlier rows); with the other preset all users act together
    once logins are over. ``ramp_s`` goes with cheap logins (``bcrypt_rounds``): then a search for
    the most users spends its time on the plateau.
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
        """Return the values of the preset."""
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
    return {
        name: _with_delays(parameters, rung_named(name)) for name in dict.fromkeys(parameters.rungs)
    }


def _with_delays(parameters: ChatLadderParameters, rung: Rung) -> Rung:
    """Return a rung with the delays that the parameters give it."""
    changes: dict[str, Any] = {"ramp_s": parameters.ramp_s}
    if rung.first_delay == "together" and parameters.preset == "published":
        changes["first_delay"] = "scaled"
    return rung.model_copy(update=changes)


def _treatments(parameters: ChatLadderParameters) -> list[Treatment]:
    return service.treatments(parameters, _rungs(parameters), _scenarios(parameters))


def _scenarios(parameters: ChatLadderParameters) -> Mapping[str, str]:
    """Return the published row of each rung that has its load and number of users."""
    return {
        name: SCENARIOS[name]
        for name, rung in _rungs(parameters).items()
        if name in SCENARIOS and not differences(parameters, rung, name)
    }


def _contrasts(parameters: ChatLadderParameters) -> list[Contrast]:
    rungs = _rungs(parameters)
    bound = len(placement().services) == 1
    refusals = {change.after: ONE_CORE for change in CHANGES if change.binds and bound}
    rows = _scenarios(parameters)
    unstated = [name for name in rows if has_unknown_delay(name)]

    def too_few(compared: Collection[Rung], share: int) -> str:
        return too_few_pings(parameters, compared, share)

    return [
        *contrasts(rungs, refusals),
        *ping_contrasts(rungs, rows, unstated, refusals, too_few),
        *_beside_latency(parameters, set(rungs)),
    ]


def _beside_latency(parameters: ChatLadderParameters, names: set[str]) -> list[Contrast]:
    """Return the claims about CPU, bytes and volume whose two rungs the run has."""
    claims = [
        _saves_cpu("no_deflate", "uvloop", "claim 3", "turning permessage-deflate off saves CPU "
                   "per message (experiment 'profile' looks at sending alone)"),
        _saves_cpu("once", "json", "what profiling found", "serializing a message once instead "
                   "of once for every receiver saves CPU"),
        _saves_cpu("protobuf", "orjson", "claim 1",
                   "protobuf costs less CPU per message than orjson"),
        _saves_cpu("uvloop", "protobuf", "claim 2", "uvloop saves CPU per message"),
        _contrast(
            "no_deflate against uvloop, bytes on the wire", "no_deflate", "uvloop", "claim 7",
            claim="compression gains little to nothing for these messages",
            response="wire_bytes_per_message",
            published_direction="none",
        ),
        _volume(compared=not volume_differences(parameters)),
        _second_core(),
    ]  # fmt: skip
    return [
        claim for claim in claims if {claim.numerator["rung"], claim.denominator["rung"]} <= names
    ]


def _volume(compared: bool) -> Contrast:
    users_ratio = RUNGS["no_deflate_425"].users / RUNGS["no_deflate"].users
    ratio = users_ratio ** published_value(service.STUDY, "system", "all", "volume_users_exponent")
    return _contrast(
        "volume at 425 users against 250",
        "no_deflate_425",
        "no_deflate",
        "claim 5 (volume against users)",
        claim="volume grows with the square of the users",
        response="messages_per_s",
        published_ratio=ratio if compared else None,
        published_direction="greater",
        set_by_load="the share of users whom a message reaches was derived from the published "
        "volume itself",
    )


def _second_core() -> Contrast:
    before, after = (
        published_value(service.STUDY, "CPU", scenario, "second_core_cpu")
        for scenario in ("before protobuf", "protobuf")
    )
    return _contrast(
        "second core",
        "protobuf",
        "json",
        f"CPU (second core from {before:g}% to {after:g}%)",
        claim="protobuf's C code moves work to a second core: to threads other than the event "
        "loop's, for nothing else could run there",
        response="beside_loop_cpu_share_chat",
        scale="difference",
        published_direction="greater",
    )


def _saves_cpu(after: str, before: str, source: str, claim: str) -> Contrast:
    return _contrast(
        f"{after} against {before}, CPU per message",
        after,
        before,
        source,
        claim=claim,
        response="cpu_us_per_message",
        published_direction="smaller",
    )


def _contrast(name: str, after: str, before: str, source: str, **what: Any) -> Contrast:
    sides = {"numerator": {"rung": after}, "denominator": {"rung": before}}
    return Contrast(name=name, source=f"chat study, {source}", **sides, **what)


def _warnings(parameters: ChatLadderParameters) -> list[Remark]:
    rungs = _rungs(parameters)
    warnings = [*load_warnings(parameters, rungs), *_length(parameters, rungs)]
    if parameters.ramp_s is not None:
        text = (
            f"where logins are over before messages start, users join within "
            f"{parameters.ramp_s:g} s; their actions keep the published intervals"
        )
        warnings.append(Remark(code="chat.ramp", text=text))
    return warnings


def _length(parameters: ChatLadderParameters, rungs: Mapping[str, Rung]) -> list[Remark]:
    """Say how long a run with the published load takes."""
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
