"""How do latency and volume of the chat service change with each step of the published ladder?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, field_validator

from perflab.errors import ParameterError
from perflab.experiments.chat import service
from perflab.experiments.chat.rungs import (
    PERCENTILES,
    SCENARIOS,
    chosen,
    published_ms,
    rung_named,
)
from perflab.experiments.chat.service import ChatParameters, Rung
from perflab.experiments.experiment import Experiment
from perflab.host.placement import placement
from perflab.recordings import Contrast
from perflab.trials.plan import Treatment

SUBSET = (
    "json", "orjson", "protobuf", "per_send", "json_login", "uvloop", "no_deflate",
    "no_deflate_350", "no_deflate_425", "no_deflate_425_spread", "best", "best_425",
)  # fmt: skip
TABLE = "chat study, published results"
ONE_CORE = "this machine gives the services one core: a process on it cannot migrate"
SECOND_CORE = "this machine gives the services one core: nothing of them can run on a second one"
PROCESS_CPU = "the lab measures the CPU of a process as a whole, not by core"


class ChatLadderParameters(ChatParameters):
    """Parameters of the ladder.

    ``rungs`` names steps of the ladder (see ``perflab.experiments.chat.rungs``); ``users`` adds the
    last published and the best configuration with these numbers of users. ``users_share`` makes
    every rung smaller, to try something out.
    """

    rungs: tuple[str, ...] = Field(default=SUBSET, min_length=1)
    users: tuple[int, ...] = ()
    users_share: float = Field(default=1.0, gt=0, le=1)

    @field_validator("rungs")
    @classmethod
    def _are_known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            try:
                rung_named(name)
            except ParameterError as error:
                raise ValueError(error.problems[0]) from None
        return names

    @field_validator("users")
    @classmethod
    def _are_users(cls, users: tuple[int, ...]) -> tuple[int, ...]:
        if any(number < 1 for number in users):
            raise ValueError("numbers of users must be above 0")
        return users


@dataclass(frozen=True)
class Change:
    """One step of the ladder: what it is claimed to do to latency."""

    after: str
    before: str
    claim: str
    binds: bool = False


CHANGES = (
    Change("orjson", "json", "orjson instead of json lowers latency"),
    Change("protobuf", "json", "protobuf instead of json lowers latency"),
    Change("protobuf", "orjson", "protobuf beats orjson end to end"),
    Change("msgspec", "orjson", ""),
    Change("msgpack", "orjson", ""),
    Change("uvloop", "protobuf", "uvloop changes latency (the study's own figures: not for good)"),
    Change("no_deflate", "uvloop", "turning permessage-deflate off lowers latency"),
    Change("json_no_deflate", "json", ""),
    Change("json_login", "json", "logins under way raise latency"),
    Change("orjson_login", "orjson", "logins under way raise latency (orjson)"),
    Change("protobuf_login", "protobuf", "logins under way raise latency (protobuf)"),
    Change("uvloop_login", "uvloop", "logins under way raise latency (uvloop)"),
    Change("protobuf_300", "protobuf", "300 users instead of 250 raise latency"),
    Change("uvloop_300", "uvloop_200", "300 users instead of 200 raise latency"),
    Change("no_deflate_350", "no_deflate", "350 users instead of 250 raise latency"),
    Change("no_deflate_425", "no_deflate", "425 users instead of 250 raise latency"),
    Change("no_deflate_425", "no_deflate_350", "425 users instead of 350 raise latency"),
    Change("json_spread", "json", ""),
    Change("slow_joins_425", "no_deflate_425", ""),
    Change("no_deflate_425_spread", "no_deflate_425", ""),
    Change("bound_425", "no_deflate_425", "binding to a core, with slower joins, lowers latency",
           binds=True),
    Change("bound_only_425", "no_deflate_425", "", binds=True),
    Change("sansio", "no_deflate", ""),
    Change("write_behind", "no_deflate", ""),
    Change("no_deflate_scaled", "no_deflate", ""),
    Change("best", "no_deflate", ""),
    Change("best_425", "no_deflate_425", ""),
)  # fmt: skip


def _rungs(parameters: ChatLadderParameters) -> dict[str, Rung]:
    return chosen(parameters.rungs, parameters.users, parameters.users_share)


def _treatments(parameters: ChatLadderParameters) -> list[Treatment]:
    return service.treatments(parameters, _rungs(parameters), SCENARIOS)


def _contrasts(parameters: ChatLadderParameters) -> list[Contrast]:
    have = set(_rungs(parameters))
    found = [
        _latency_contrast(change, share, refusal)
        for change in CHANGES
        for share in PERCENTILES
        if (refusal := _refusal(change)) or {change.after, change.before} <= have
    ]
    return [*found, *_cost_contrasts(have), *_volume_contrasts(have), _second_core()]


def _refusal(change: Change) -> str:
    return ONE_CORE if change.binds and len(placement().services) == 1 else ""


def _latency_contrast(change: Change, share: int, refusal: str) -> Contrast:
    after, before = published_ms(change.after), published_ms(change.before)
    ratio = after[share] / before[share] if after and before else None
    claim = change.claim or f"beyond the study: {change.after} against {change.before}"
    return Contrast(
        name=f"{change.after} against {change.before}, p{share}",
        claim=f"{claim} (p{share})",
        response=f"delivery_p{share}_ms",
        numerator={"rung": change.after},
        denominator={"rung": change.before},
        published_ratio=ratio,
        published_direction=None if ratio is None else _direction(ratio),
        source=TABLE if ratio is not None else "none",
        not_testable=refusal,
    )


def _direction(ratio: float) -> Literal["greater", "smaller"]:
    return "greater" if ratio > 1 else "smaller"


def _cost_contrasts(have: set[str]) -> list[Contrast]:
    wanted = [
        ("no_deflate", "uvloop", 64.26 / 134.9, "chat study, claim 3 (sending 64.26 of 134.9 s)",
         "turning permessage-deflate off halves the cost of sending; here all CPU per message"),
        ("json", "per_send", None, "chat study, what profiling found",
         "serializing a message once instead of once for every receiver saves CPU"),
        ("protobuf", "orjson", None, "chat study, claim 1",
         "protobuf costs less CPU per message than orjson"),
        ("uvloop", "protobuf", None, "chat study, claim 2", "uvloop saves CPU per message"),
    ]  # fmt: skip
    return [
        Contrast(
            name=f"{after} against {before}, CPU per message",
            claim=claim,
            response="cpu_us_per_message",
            numerator={"rung": after},
            denominator={"rung": before},
            published_ratio=ratio,
            published_direction="smaller",
            source=source,
        )
        for after, before, ratio, source, claim in wanted
        if {after, before} <= have
    ]


def _volume_contrasts(have: set[str]) -> list[Contrast]:
    if not {"no_deflate", "no_deflate_425"} <= have:
        return []
    return [
        Contrast(
            name="volume at 425 users against 250",
            claim="volume grows with the square of the users",
            response="messages_per_s",
            numerator={"rung": "no_deflate_425"},
            denominator={"rung": "no_deflate"},
            published_ratio=(425 / 250) ** 2,
            published_direction="greater",
            source="chat study, claim 5 (0.1 n^2 messages/s)",
        )
    ]


def _second_core() -> Contrast:
    return Contrast(
        name="second core",
        claim="protobuf's C code moves work to a second core",
        response="plateau_cpu_share_chat",
        numerator={"rung": "protobuf"},
        denominator={"rung": "json"},
        published_direction="greater",
        source="chat study, CPU (second core from 3% to 20%)",
        not_testable=SECOND_CORE if len(placement().services) == 1 else PROCESS_CPU,
    )


def _warnings(parameters: ChatLadderParameters) -> list[str]:
    warnings = service.load_warnings(parameters)
    if parameters.users_share != 1.0:
        warnings.append(f"every rung has {parameters.users_share:.0%} of the users it is named for")
    return warnings


EXPERIMENT = Experiment(
    name="chat_ladder",
    title="Chat: the ladder from JSON to the highest volume held",
    question="What does each single change do to the latency of deliveries, and how many messages "
    "a second are held within the targets?",
    parameters=ChatLadderParameters,
    treatments=_treatments,
    factors=lambda parameters: service.factors(parameters, _rungs(parameters), SCENARIOS),
    contrasts=_contrasts,
    warnings=_warnings,
)
