"""Treatments of the chat service: settings, published load and delays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from perflab.instruments import CpuSpeed, Requests, SchedulerAccounts
from perflab.load.workload import Request, Scripted, Workload
from perflab.stacks.plan import Node, StackPlan
from perflab.systems.chat import PASSWORD
from perflab.systems.chat.streams import Streams
from perflab.trials.experiment import ReadyStack
from perflab.trials.ladders import Labelled, treatments_of
from perflab.trials.plan import Treatment
from perflab.trials.run_parameters import PresetParameters

STUDY = "chat"
BASE_CASE = ("workload", "base case")
USERS = "perflab.systems.chat.users"
# Slow first logins must not make a trial fail that would end in time.
SLACK_S = 20.0
# Between the last join and the first action, and between the last action and the first to leave.
PAUSE_S = 1.0

# Requests are logins here and must not pass for the measured deliveries.
INSTRUMENTS = (
    Requests(prefix="request_"),
    CpuSpeed(),
    SchedulerAccounts(),
    Streams(),
)
TOGETHER = ("together", "spread")
# The study does not state its number of channels.
CHANNELS = 10
FirstDelay = Literal["action", "scheduled", "scaled", "together", "spread"]
Codec = Literal["json", "orjson", "msgspec", "protobuf", "msgpack"]
CodecLevels = Annotated[
    tuple[Codec, ...],
    Field(min_length=1, description="levels to compare: how a message is turned into bytes"),
]
PlateauSeconds = Annotated[
    float, Field(gt=0, le=3600, description="seconds of each trial in which all users act")
]
JoinSeconds = Annotated[float, Field(ge=0, le=60, description="seconds between two users who join")]
ActionSeconds = Annotated[
    float, Field(ge=0.05, le=600, description="seconds between two actions of a user")
]
SETTINGS = (
    "codec", "loop", "deflate", "serialize", "websocket", "commit", "bind", "cprofile",
    "login_hash",
)  # fmt: skip
# The users of the published study and the monitor.
ACCOUNTS = 251


class ChatParameters(PresetParameters):
    """Parameters of every experiment on the chat service; intervals are as published.

    With ``preset`` ``published`` the number of actions is, too, and a ping waits for the answer to
    the one before; else one ping a second is sent when it is due.
    """

    study: ClassVar = STUDY
    stated: ClassVar = {
        "actions": (*BASE_CASE, "actions"),
        "join_s": (*BASE_CASE, "join_delay"),
        "action_s": (*BASE_CASE, "action_delay"),
        "subscriber_share": ("system", "all", "receivers_per_message_per_user"),
    }

    actions: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="actions of each user; none: as many as plateau_s needs",
    )
    plateau_s: PlateauSeconds = 30.0
    join_s: JoinSeconds = 0.25
    action_s: ActionSeconds = 6.0
    bcrypt_rounds: int = Field(
        default=11,
        ge=4,
        le=16,
        description="cost of hashing a password at login: 2 to this power; one more doubles it",
    )
    subscriber_share: float = Field(
        default=0.64,
        gt=0,
        le=1,
        description="share of the users whom a message reaches; 0.64 gives 0.1 n^2 messages a "
        "second for n users",
    )

    @model_validator(mode="after")
    def _has_a_plateau(self) -> ChatParameters:
        if self.actions is None and self.plateau_s < self.action_s:
            raise ValueError(
                f"plateau_s = {self.plateau_s:g} is too short: users act every "
                f"{self.action_s:g} s (action_s); make it at least as long"
            )
        return self


class Rung(Labelled):
    """One combination of everything that the study varied.

    ``first_delay`` is the time from joining to the first action: ``action``, one ``action_s`` after
    the login has ended, so that messages and logins overlap and a slow login moves a user off the
    beat of the others; ``scheduled``, one ``action_s`` after the login was due; ``scaled``, users
    times ``join_s``, as in the study's later runs, so that logins are over first.

    With ``together`` logins are over and all users begin within one ``action_s``, in the offsets of
    their joins, so that few actions make a plateau. All stay until the last user has acted, because
    the service drops a message to a user who leaves within a burst. With ``spread`` the beginnings
    are spread evenly: with the published joins, users act in 24 bursts every 6 s.

    With ``ramp_s`` all users join within so many seconds if logins are over before messages start.
    First actions still lie as far apart as ``join_s`` says. ``scenario`` is the published row that
    the rung repeats; None where no rung of the run repeats one.
    """

    label: str = ""
    scenario: str | None = None
    codec: Codec = "json"
    loop: Literal["asyncio", "uvloop"] = "asyncio"
    deflate: Literal["on", "off"] = "on"
    serialize: Literal["per_message", "per_send"] = "per_message"
    websocket: Literal["websockets", "websockets-sansio"] = "websockets"
    commit: Literal["batched", "write_behind"] = "batched"
    bind: Literal["off", "on"] = "off"
    cprofile: Literal["off", "on"] = "off"
    login_hash: Literal["bcrypt", "none"] = "bcrypt"
    first_delay: FirstDelay = "together"
    join_factor: float = 1.0
    ramp_s: float | None = Field(default=None, gt=0, le=3600)
    users: int = Field(default=250, ge=1, le=100_000)


def beat_s(parameters: ChatParameters, rung: Rung) -> float:
    """Return the seconds between users' first actions, and between joins without ``ramp_s``."""
    return parameters.join_s * rung.join_factor


def join_s(parameters: ChatParameters, rung: Rung) -> float:
    """Return the seconds between two users' joins."""
    if rung.ramp_s is not None and rung.first_delay in TOGETHER:
        return rung.ramp_s / rung.users
    return beat_s(parameters, rung)


def actions(parameters: ChatParameters, rung: Rung) -> int:
    """Return how many actions every user takes; the first user begins earlier than the last."""
    if parameters.actions is not None:
        return parameters.actions
    ahead_s = (rung.users - 1) * beat_s(parameters, rung)
    if rung.first_delay in TOGETHER:
        ahead_s = min(ahead_s, parameters.action_s)
    return 1 + math.ceil((ahead_s + parameters.plateau_s) / parameters.action_s)


def load_s(parameters: ChatParameters, rung: Rung) -> float:
    """Return the seconds that a trial of a rung takes if nothing is late."""
    ramp_s = rung.users * join_s(parameters, rung)
    first_s = ramp_s if rung.first_delay == "scaled" else parameters.action_s
    return ramp_s + first_s + actions(parameters, rung) * parameters.action_s


def expected_pings(parameters: ChatParameters, rung: Rung) -> int:
    """Return the most pings that a trial can have: one a second until the last action."""
    silent_s = join_s(parameters, rung) + parameters.action_s
    return math.floor(load_s(parameters, rung) - silent_s)


def workload(parameters: ChatParameters, rung: Rung) -> Workload:
    """Return the published load of a rung."""
    ramp_s = rung.users * join_s(parameters, rung)
    first_s = ramp_s if rung.first_delay == "scaled" else parameters.action_s
    script_parameters: dict[str, Any] = {
        "codec": rung.codec,
        "deflate": rung.deflate == "on",
        "channels": CHANNELS,
        "action_s": parameters.action_s,
        "pings": "closed" if parameters.preset == "published" else "planned",
    }
    if rung.first_delay in TOGETHER:
        begin_s = ramp_s + PAUSE_S
        script_parameters |= {
            "begin_s": begin_s,
            "leave_s": begin_s + actions(parameters, rung) * parameters.action_s + PAUSE_S,
            "beat_s": beat_s(parameters, rung),
            "spread": rung.first_delay == "spread",
        }
    else:
        beat = {"beat_s": beat_s(parameters, rung)} if rung.first_delay == "scheduled" else {}
        script_parameters |= {"first_s": first_s, **beat}
    return Workload(
        request=Request(node="chat"),
        arrivals=Scripted(
            script=f"{USERS}:ChatUser",
            monitor=f"{USERS}:Monitor",
            users=rung.users,
            duration_s=load_s(parameters, rung) + SLACK_S,
            actions=actions(parameters, rung),
            join_s=join_s(parameters, rung),
            parameters=script_parameters,
        ),
        timeout_s=60.0,
    )


def stack(parameters: ChatParameters, rung: Rung, accounts: int) -> StackPlan:
    """Return the chat service with the settings of a rung; ``accounts`` are for all rungs."""
    settings: dict[str, str | int | float] = {name: getattr(rung, name) for name in SETTINGS}
    settings |= {
        "bcrypt_rounds": parameters.bcrypt_rounds,
        "channels": CHANNELS,
        "subscriber_share": parameters.subscriber_share,
        "accounts": accounts,
    }
    return StackPlan(nodes=(Node(name="chat", service="chat", settings=settings),))


def levels(parameters: ChatParameters, rung: Rung) -> dict[str, object]:
    """Return a rung's levels beside its name."""
    return {
        **{factor: getattr(rung, factor) for factor in (*SETTINGS, "first_delay", "users")},
        "join_s": f"{join_s(parameters, rung):.4g}",
        "beat_s": f"{beat_s(parameters, rung):.4g}",
        **({} if rung.scenario is None else {"scenario": rung.scenario}),
    }


def treatments(parameters: ChatParameters, rungs: Mapping[str, Rung]) -> list[Treatment]:
    """Return a treatment for every rung."""
    # All rungs have as many accounts, so that they share one preparation.
    accounts = max(rung.users for rung in rungs.values()) + 1
    labelled = {
        name: rung.model_copy(update={"label": f"{name.replace('_', ' ')}, {rung.users} users"})
        for name, rung in rungs.items()
    }
    stack_of = partial(stack, accounts=accounts)
    return treatments_of(labelled, parameters, levels, stack_of, workload, lambda *_: INSTRUMENTS)


STACKS = (
    ReadyStack(
        "chat",
        lambda: stack(ChatParameters(), Rung(), ACCOUNTS),
        f"log in as user0 to user{ACCOUNTS - 1}, password '{PASSWORD}'",
    ),
)
