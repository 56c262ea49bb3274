"""How do latency and volume of the chat service change with each step of the published ladder?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field, field_validator

from perflab.host.placing import placement
from perflab.recordings import Contrast, Remark, published_value
from perflab.systems.chat import stacks
from perflab.systems.chat.rungs import (
    CHANGES,
    CONTRASTS,
    RUNGS,
    SCENARIOS,
    contrasts,
    ping_contrasts,
    rung_named,
)
from perflab.systems.chat.stacks import STUDY, TOGETHER, ChatParameters, Rung
from perflab.trials.experiment import Experiment
from perflab.trials.ladders import having

SUBSET = (
    "json", "orjson", "protobuf", "once", "json_login", "json_spread", "uvloop",
    "asyncio_no_deflate", "no_deflate", "no_deflate_425", "slow_joins_425",
    "no_deflate_425_spread", "best_425",
)  # fmt: skip
ONE_CORE = "this machine gives the services one core: a process on it cannot migrate"
# With fewer blocks none of the claims that 19 rungs make at once could be shown.
PUBLISHED_BLOCKS = 10
VOLUME = "volume at 425 users against 250"


class ChatLadderParameters(ChatParameters):
    """Parameters of the ladder.

    With ``preset`` ``published`` the rungs are the 19 published rows at the published load, and
    their pings are compared with the published sizes. In rungs without login load, the first delay
    then is users times ``join_s``, as in the study's later rows; with the other preset all users
    act together once logins are over. ``ramp_s`` goes with cheap logins (``bcrypt_rounds``): then a
    search for the most users spends its time on the plateau.
    """

    rungs: tuple[str, ...] = Field(
        default=SUBSET,
        min_length=1,
        description="configurations to compare, by name: json, best, best_800 (with 800 users); "
        "the message about an unknown name lists them all",
    )
    ramp_s: float | None = Field(
        default=None,
        gt=0,
        le=3600,
        description="all users join within so many seconds, in configurations whose messages start "
        "after all logins; none: users join as join_s says",
    )

    @classmethod
    def published_values(cls) -> dict[str, Any]:
        """Return the values of the preset."""
        ladder = {"rungs": tuple(SCENARIOS), "blocks": PUBLISHED_BLOCKS}
        return {**super().published_values(), **ladder}

    @field_validator("rungs")
    @classmethod
    def _are_known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            rung_named(name)
        return names

    def differences(self, **levels: Any) -> list[str]:
        """Return the differences of a run's load from the study's.

        Where the number of actions is given, ``plateau_s`` changes nothing. ``ramp_s`` changes
        nothing in the rows of the study.
        """
        texts: list[str] = []
        default_s = type(self).model_fields["plateau_s"].default
        levels = {"plateau_s": default_s, "ramp_s": None, **levels}
        if self.actions is None:
            times = self.published_values()["actions"]
            texts.append(f"users act for {self.plateau_s:g} s (published: {times:g} times each)")
            levels["actions"] = times
        texts += super().differences(**levels)
        if self.preset != "published":
            texts.append(
                "a ping does not wait for the answer to the ping before it (published: it does)"
            )
        return texts


def _rungs(parameters: ChatLadderParameters) -> dict[str, Rung]:
    """Return the rungs by name, with their delays and the published rows that they repeat."""
    rungs = {}
    for name in parameters.rungs:
        rung = rung_named(name)
        changes: dict[str, Any] = {"ramp_s": parameters.ramp_s}
        if rung.first_delay == "together" and parameters.preset == "published":
            changes["first_delay"] = "scaled"
        rungs[name] = rung.model_copy(update=changes)
    if SCENARIOS.keys().isdisjoint(rungs) or parameters.differences():
        return rungs
    return {
        name: rung.model_copy(update={"scenario": SCENARIOS.get(name, "")})
        for name, rung in rungs.items()
    }


def _contrasts(parameters: ChatLadderParameters) -> list[Contrast]:
    rungs = _rungs(parameters)
    bound = len(placement().services) == 1
    refusals = {change.after: ONE_CORE for change in CHANGES if change.binds and bound}
    return [
        *contrasts(rungs, refusals),
        *ping_contrasts(parameters, rungs, refusals),
        *having(_beside_latency(parameters), rungs),
    ]


def _beside_latency(parameters: ChatLadderParameters) -> Iterator[Contrast]:
    """Yield the claims about CPU, bytes and volume."""
    for row in CONTRASTS:
        contrast = row.contrast(STUDY, sized=False)
        if row.name == VOLUME and _has_published_volume(parameters):
            users_ratio = RUNGS["no_deflate_425"].users / RUNGS["no_deflate"].users
            exponent = published_value(STUDY, "system", "all", "volume_users_exponent")
            contrast = contrast.model_copy(update={"published_ratio": users_ratio**exponent})
        yield contrast


def _has_published_volume(parameters: ChatLadderParameters) -> bool:
    stated = parameters.published_values()
    names = ("action_s", "subscriber_share")
    return all(getattr(parameters, name) == stated[name] for name in names)


def _warnings(parameters: ChatLadderParameters) -> list[Remark]:
    rungs = _rungs(parameters)
    warnings: list[Remark] = []
    if not SCENARIOS.keys().isdisjoint(rungs):
        is_preset = parameters.preset == "published"
        advice = "" if is_preset else "; preset=published has the study's load"
        warnings += parameters.not_compared("chat.load", end=advice)
    if any(rung.first_delay in TOGETHER for rung in rungs.values()):
        text = (
            "where logins are over before messages start, all users first send within "
            f"{parameters.action_s:g} s; those of the study did so in the order of their logins"
        )
        warnings.append(Remark(code="chat.begin_together", text=text))
    if parameters.ramp_s is not None:
        text = (
            f"where logins are over before messages start, users join within "
            f"{parameters.ramp_s:g} s; their actions keep the published intervals"
        )
        warnings.append(Remark(code="chat.ramp", text=text))
    return warnings


EXPERIMENT = Experiment(
    name="chat_ladder",
    title="Chat: the ladder from JSON to the highest volume held",
    question="What does each single change do to the latency of deliveries, and how many messages "
    "a second are held within the targets?",
    parameters=ChatLadderParameters,
    treatments=lambda parameters: stacks.treatments(parameters, _rungs(parameters)),
    contrasts=_contrasts,
    warnings=_warnings,
)
