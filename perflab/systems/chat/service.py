"""The chat service as a treatment: its settings, the published load, and the two delays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from perflab.instruments import CpuSpeed, Requests, SchedulerAccounts
from perflab.load.workload import Request, Scripted, Workload
from perflab.parameters import Parameters
from perflab.recordings import published_value
from perflab.stacks.plan import Node, StackPlan
from perflab.systems.chat.streams import Streams
from perflab.trials.experiment import Preset, PresetParameters
from perflab.trials.plan import Treatment

STUDY = "chat"
BASE_CASE = (STUDY, "workload", "base case")
USERS = "perflab.systems.chat.users"
# The first users' logins must not make a trial fail that ends in time otherwise.
SLACK_S = 20.0
# Between the last join and the first action, and between the last action and the first to leave.
PAUSE_S = 1.0

# Requests are logins here: they shall not pass for what is measured.
INSTRUMENTS = (
    Requests(prefix="request_", steady=False),
    CpuSpeed(),
    SchedulerAccounts(),
    Streams(),
)
NOTHING: Mapping[str, str] = {}
TOGETHER = ("together", "spread")
# To which users listen; the study does not say how many there were.
CHANNELS = 10
FirstDelay = Literal["action", "scheduled", "scaled", "together", "spread"]
Codec = Literal["json", "orjson", "msgspec", "protobuf", "msgpack"]


class ChatParameters(PresetParameters):
    """Parameters of every experiment on the chat service.

    Intervals are as published. What may be cut is the number of ``actions``. With ``preset``
    ``published`` that is as published too, and a ping waits for its answer; else one a second is
    sent when it is due (see :class:`~perflab.systems.chat.users.Monitor`).
    """

    preset: Preset = Field(
        default="quick",
        description="published: take the published study's load for whatever is not given; trials "
        "then take minutes",
    )
    actions: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="actions of each user; none: as many as plateau_s needs",
    )
    plateau_s: float = Field(
        default=30.0, gt=0, le=3600, description="seconds of each trial in which all users act"
    )
    join_s: float = Field(
        default=0.25, ge=0, le=60, description="seconds between two users who join"
    )
    action_s: float = Field(
        default=6.0, ge=0.05, le=600, description="seconds between two actions of a user"
    )
    bcrypt_rounds: int = Field(
        default=11,
        ge=4,
        le=16,
        description="what a hashed login costs: 2 to the power of this many rounds; one more "
        "doubles it",
    )
    subscriber_share: float = Field(
        default=0.64,
        gt=0,
        le=1,
        description="share of the users whom a message reaches; 0.64 gives 0.1 n^2 messages a "
        "second for n users",
    )

    @classmethod
    def published_values(cls) -> dict[str, Any]:
        """Return what the preset sets."""
        return {
            "actions": int(published_value(*BASE_CASE, "actions")),
            "join_s": published_value(*BASE_CASE, "join_delay"),
            "action_s": published_value(*BASE_CASE, "action_delay"),
            "subscriber_share": published_value(
                STUDY, "system", "all", "receivers_per_message_per_user"
            ),
        }

    @model_validator(mode="after")
    def _has_a_plateau(self) -> ChatParameters:
        if self.actions is None and self.plateau_s < self.action_s:
            raise ValueError(
                f"plateau_s = {self.plateau_s:g} holds no action: users act every "
                f"{self.action_s:g} s (action_s)"
            )
        return self


class Rung(Parameters):
    """One combination of everything that the study varied.

    ``first_delay`` is the time from joining to the first action.

    ``action``
        One ``action_s`` after the login, so that messages and logins overlap. The time that a
        login takes moves a user off the beat of the others, and bursts become wider.
    ``scheduled``
        The same, counted from when the login was due: the beat stays whatever logins take.
    ``scaled``
        Users times ``join_s``, as in the study's later runs; logins are over, but users begin as
        slowly as they joined.
    ``together``
        Logins are over and all begin within one ``action_s``, each as far behind the first as it
        joined, so that few actions make a plateau. All stay until the last has acted: a message to
        somebody who leaves in the burst of a beat is dropped, and nobody knows how late it was.
    ``spread``
        As ``together``, but evenly over that time: as published, 0.25 s between joins and 6 s
        between actions make users act in bursts, 24 in every 6 s.

    ``ramp_s`` lets all users join within so many seconds, where logins are over before messages
    start. What follows stays as it is: first actions lie as far apart as ``join_s`` says.
    """

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


SETTINGS = (
    "codec", "loop", "deflate", "serialize", "websocket", "commit", "bind", "cprofile",
    "login_hash",
)  # fmt: skip


def beat_s(parameters: ChatParameters, rung: Rung) -> float:
    """Return how far apart first actions lie, and joins unless they are hurried."""
    return parameters.join_s * rung.join_factor


def join_s(parameters: ChatParameters, rung: Rung) -> float:
    """Return the seconds between two users' joins."""
    if rung.ramp_s is not None and rung.first_delay in TOGETHER:
        return rung.ramp_s / rung.users
    return beat_s(parameters, rung)


def actions(parameters: ChatParameters, rung: Rung) -> int:
    """Return how many actions every user takes.

    All users act between the last one's first action and the first one's last; the first begins
    as much earlier as the rung's delays say.
    """
    if parameters.actions is not None:
        return parameters.actions
    ahead_s = (rung.users - 1) * beat_s(parameters, rung)
    if rung.first_delay in TOGETHER:
        ahead_s = min(ahead_s, parameters.action_s)
    return 1 + math.ceil((ahead_s + parameters.plateau_s) / parameters.action_s)


def load_s(parameters: ChatParameters, rung: Rung) -> float:
    """Return how long a trial of a rung takes where nothing is late."""
    ramp_s = rung.users * join_s(parameters, rung)
    first_s = ramp_s if rung.first_delay == "scaled" else parameters.action_s
    return ramp_s + first_s + actions(parameters, rung) * parameters.action_s


def expected_pings(parameters: ChatParameters, rung: Rung) -> int:
    """Return how many pings a trial of a rung has at most, one a second on average.

    They begin with the load and end when the last user has acted for the last time.
    """
    silent_s = join_s(parameters, rung) + parameters.action_s
    return math.floor(load_s(parameters, rung) - silent_s)


def workload(parameters: ChatParameters, rung: Rung) -> Workload:
    """Return the published load of a rung."""
    ramp_s = rung.users * join_s(parameters, rung)
    words: dict[str, Any] = {
        "codec": rung.codec,
        "deflate": rung.deflate == "on",
        "channels": CHANNELS,
        "action_s": parameters.action_s,
        "pings": "closed" if parameters.preset == "published" else "planned",
    }
    if rung.first_delay in TOGETHER:
        begin_s = ramp_s + PAUSE_S
        words |= {
            "begin_s": begin_s,
            "leave_s": begin_s + actions(parameters, rung) * parameters.action_s + PAUSE_S,
            "beat_s": beat_s(parameters, rung),
            "spread": rung.first_delay == "spread",
        }
    else:
        words["first_s"] = ramp_s if rung.first_delay == "scaled" else parameters.action_s
        if rung.first_delay == "scheduled":
            words["beat_s"] = beat_s(parameters, rung)
    return Workload(
        request=Request(node="chat"),
        arrivals=Scripted(
            script=f"{USERS}:ChatUser",
            monitor=f"{USERS}:Monitor",
            users=rung.users,
            duration_s=load_s(parameters, rung) + SLACK_S,
            actions=actions(parameters, rung),
            join_s=join_s(parameters, rung),
            parameters=words,
        ),
        timeout_s=60.0,
    )


def stack(parameters: ChatParameters, rung: Rung, accounts: int) -> StackPlan:
    """Return the chat service with the settings of a rung.

    ``accounts`` must hold for all rungs of a run: instances are shared where settings are equal.
    """
    settings: dict[str, str | int | float] = {name: getattr(rung, name) for name in SETTINGS}
    settings |= {
        "bcrypt_rounds": parameters.bcrypt_rounds,
        "channels": CHANNELS,
        "subscriber_share": parameters.subscriber_share,
        "accounts": accounts,
    }
    return StackPlan(nodes=(Node(name="chat", service="chat", settings=settings),))


def treatments(
    parameters: ChatParameters, rungs: Mapping[str, Rung], scenarios: Mapping[str, str] = NOTHING
) -> list[Treatment]:
    """Return a treatment for every rung, named as the mapping names it.

    ``scenarios`` names the rows of the published table that rungs are.
    """
    accounts = max(rung.users for rung in rungs.values()) + 1
    return [
        Treatment(
            name=f"rung={name}",
            label=f"{name.replace('_', ' ')}, {rung.users} users",
            levels=levels(parameters, name, rung, scenarios),
            stack=stack(parameters, rung, accounts),
            workload=workload(parameters, rung),
            instruments=INSTRUMENTS,
        )
        for name, rung in rungs.items()
    ]


def levels(
    parameters: ChatParameters, name: str, rung: Rung, scenarios: Mapping[str, str] = NOTHING
) -> dict[str, str]:
    """Return a rung's levels, its own name first."""
    known = {"scenario": scenarios.get(name, "")} if scenarios else {}
    return {
        "rung": name,
        **{factor: str(getattr(rung, factor)) for factor in (*SETTINGS, "first_delay")},
        "users": str(rung.users),
        "join_s": f"{join_s(parameters, rung):.4g}",
        "beat_s": f"{beat_s(parameters, rung):.4g}",
        **known,
    }


def factors(
    parameters: ChatParameters, rungs: Mapping[str, Rung], scenarios: Mapping[str, str] = NOTHING
) -> dict[str, tuple[str, ...]]:
    """Return the levels of every factor, in the order in which rungs first have them."""
    rows = [levels(parameters, name, rung, scenarios) for name, rung in rungs.items()]
    return {factor: tuple(dict.fromkeys(row[factor] for row in rows)) for factor in rows[0]}
