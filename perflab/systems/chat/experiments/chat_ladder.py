"""How do latency and volume of the chat service change with each step of the published ladder?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field, field_validator

from perflab.host.placing import placement
from perflab.recordings import Contrast, Remark, published_value
from perflab.systems.chat import stacks
from perflab.systems.chat.responses import STEADY
from perflab.systems.chat.rungs import (
    CHANGES,
    CONTRASTS,
    RESULTS,
    RUNGS,
    SCENARIOS,
    contrasts,
    ping_contrasts,
    rung_named,
)
from perflab.systems.chat.stacks import (
    BASE_CASE,
    STUDY,
    TOGETHER,
    ChatParameters,
    Rung,
    actions,
    beat_s,
)
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


def _rungs(parameters: ChatLadderParameters) -> dict[str, Rung]:
    """Return the rungs by name, with their delays and the published rows that they repeat."""
    rungs = {}
    for name in parameters.rungs:
        rung = rung_named(name)
        changes: dict[str, Any] = {"ramp_s": parameters.ramp_s}
        if rung.first_delay == "together" and parameters.preset == "published":
            changes["first_delay"] = "scaled"
        rungs[name] = rung.model_copy(update=changes)
    scenarios = {
        name: SCENARIOS[name]
        for name, rung in rungs.items()
        if name in SCENARIOS and not differences(parameters, rung, name)
    }
    if not scenarios:
        return rungs
    return {
        name: rung.model_copy(update={"scenario": scenarios.get(name, "")})
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
        if row.name == VOLUME and not volume_differences(parameters):
            users_ratio = RUNGS["no_deflate_425"].users / RUNGS["no_deflate"].users
            exponent = published_value(STUDY, "system", "all", "volume_users_exponent")
            contrast = contrast.model_copy(update={"published_ratio": users_ratio**exponent})
        yield contrast


def _warnings(parameters: ChatLadderParameters) -> list[Remark]:
    rungs = _rungs(parameters)
    warnings = load_warnings(parameters, rungs)
    if parameters.ramp_s is not None:
        text = (
            f"where logins are over before messages start, users join within "
            f"{parameters.ramp_s:g} s; their actions keep the published intervals"
        )
        warnings.append(Remark(code="chat.ramp", text=text))
    return warnings


def load_warnings(parameters: ChatParameters, rungs: Mapping[str, Rung]) -> list[Remark]:
    """Return how the loads of rungs differ from those of the study, in a remark for each cause.

    Rungs that repeat a published row are held against that row.
    """
    warnings = []
    different = dict.fromkeys(
        words
        for name, rung in rungs.items()
        if name in SCENARIOS
        for words in differences(parameters, rung, name)
    )
    if different:
        advice = (
            "" if parameters.preset == "published" else "; preset=published has the study's load"
        )
        text = f"published sizes are not compared: {'; '.join(different)}{advice}"
        warnings.append(Remark(code="chat.load", text=text))
    if any(rung.first_delay in TOGETHER for rung in rungs.values()):
        text = (
            "where logins are over before messages start, all users first send within "
            f"{parameters.action_s:g} s; those of the study did so in the order of their logins"
        )
        warnings.append(Remark(code="chat.begin_together", text=text))
    return warnings


def differences(parameters: ChatParameters, rung: Rung, name: str) -> list[str]:
    """Return in words how the load of a rung differs from that of the published row ``name``.

    The study does not state what kept logins out of the rows with deflate; this function takes the
    first delay of the later rows for them. The cost of logins must be the default, because one
    could else try costs until a size fits.
    """
    has_own_joins = RUNGS[name].join_factor != 1.0
    joins = (RESULTS, SCENARIOS[name]) if has_own_joins else BASE_CASE[1:]
    default = ChatParameters.model_fields["bcrypt_rounds"].get_default()
    compared = [
        (beat_s(parameters, rung), published_value(STUDY, *joins, "join_delay"),
         "users join every {:g} s"),
        (actions(parameters, rung), published_value(*BASE_CASE, "actions"),
         "each user takes {:g} actions"),
        (rung.users, RUNGS[name].users, "there are {:g} users"),
        (parameters.bcrypt_rounds, default, "bcrypt_rounds is {:g}"),
    ]  # fmt: skip
    texts = volume_differences(parameters) + [
        f"{words.format(value)} (published: {stated:g})"
        for value, stated, words in compared
        if not math.isclose(value, stated)
    ]
    if rung.ramp_s is not None and rung.first_delay in TOGETHER:
        texts.append(f"users join within {rung.ramp_s:g} s")
    first_delay = "action" if RUNGS[name].first_delay == "action" else "scaled"
    if rung.first_delay != first_delay:
        texts.append(f"first_delay is '{rung.first_delay}' (in that row: '{first_delay}')")
    if parameters.preset != "published":
        texts.append(
            "a ping does not wait for the answer to the ping before it (published: it does)"
        )
    return texts


def volume_differences(parameters: ChatParameters) -> list[str]:
    """Return in words how the settings of the message volume differ from the study's."""
    published_s = published_value(*BASE_CASE, "action_delay")
    share = published_value(STUDY, "system", "all", "receivers_per_message_per_user")
    texts = []
    if parameters.action_s != published_s:
        texts.append(f"users act every {parameters.action_s:g} s (published: {published_s:g} s)")
    if parameters.subscriber_share != share:
        texts.append(
            f"a message reaches {parameters.subscriber_share:.0%} of them (published: {share:.0%})"
        )
    return texts


EXPERIMENT = Experiment(
    name="chat_ladder",
    title="Chat: the ladder from JSON to the highest volume held",
    question="What does each single change do to the latency of deliveries, and how many messages "
    "a second are held within the targets?",
    parameters=ChatLadderParameters,
    steady=STEADY,
    treatments=lambda parameters: stacks.treatments(parameters, _rungs(parameters)),
    contrasts=_contrasts,
    warnings=_warnings,
)
