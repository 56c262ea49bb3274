"""The published load of the chat service, and what differs from it."""

from __future__ import annotations

import math
from collections.abc import Collection

from perflab.recordings import Remark, published, published_value
from perflab.systems.chat.service import STUDY, TOGETHER, ChatParameters, Rung, actions, beat_s

# Where the study says how far apart users join.
JOIN_DELAYS = (
    ("workload", "base case", "join_delay"),
    (
        "published results",
        "+ uvloop, no permessage-deflate, 425 users, main process bound to one core, "
        "0.35 s between joins",
        "join_delay",
    ),
)


def load_warnings(parameters: ChatParameters, rungs: Collection[Rung]) -> list[Remark]:
    """Say where the load is not as published."""
    found = dict.fromkeys(each for rung in rungs for each in differences(parameters, rung))
    texts = {}
    if found:
        texts["load"] = f"published sizes are not compared: {'; '.join(found)}"
    if any(rung.first_delay in TOGETHER for rung in rungs):
        texts["begin_together"] = (
            "where logins are over before messages start, all users begin within "
            f"{parameters.action_s:g} s; the study's began as slowly as they had joined"
        )
    return [Remark(code=f"chat.{code}", text=text) for code, text in texts.items()]


def published_exponent() -> float:
    """Return b of the published volume = a users^b."""
    return published_value(STUDY, "system", "all", "volume_users_exponent")


def as_published(parameters: ChatParameters, rung: Rung) -> bool:
    """Say whether a published size may be compared; see :func:`differences`."""
    return not differences(parameters, rung)


def differences(parameters: ChatParameters, rung: Rung) -> list[str]:
    """Return in what the load of a rung differs from the study's, in words."""
    found = volume_differences(parameters)
    joins_s = [published_value(STUDY, *row) for row in JOIN_DELAYS]
    if not any(math.isclose(beat_s(parameters, rung), each) for each in joins_s):
        listed = " or ".join(f"{each:g}" for each in joins_s)
        found.append(f"users join every {beat_s(parameters, rung):g} s (published: {listed} s)")
    wanted = published_value(STUDY, "workload", "base case", "actions")
    if actions(parameters, rung) != wanted:
        found.append(f"users take {actions(parameters, rung)} actions (published: {wanted:g})")
    if rung.ramp_s is not None and rung.first_delay in TOGETHER:
        found.append(f"users join within {rung.ramp_s:g} s")
    if not _has_a_published_first_delay(parameters, rung):
        found.append(f"the first delay is '{rung.first_delay}', which the study did not have")
    return found


def volume_differences(parameters: ChatParameters) -> list[str]:
    """Return in what differs from the study what sets the volume of messages, in words."""
    wanted_s = published_value(STUDY, "workload", "base case", "action_delay")
    share = published_value(STUDY, "system", "all", "receivers_per_message_per_user")
    found = []
    if parameters.action_s != wanted_s:
        found.append(f"users act every {parameters.action_s:g} s (published: {wanted_s:g} s)")
    if parameters.subscriber_share != share:
        found.append(
            f"a message reaches {parameters.subscriber_share:.0%} of them (published: {share:.0%})"
        )
    return found


def _has_a_published_first_delay(parameters: ChatParameters, rung: Rung) -> bool:
    """Say whether users begin as the study's did, as far as it says how they did.

    It gives 6 s for its base case, and from some row on users times the delay between joins.
    """
    if rung.first_delay == "action":
        stated = published_value(STUDY, "workload", "base case", "first_delay")
        return parameters.action_s == stated
    if rung.first_delay != "scaled":
        return False
    table = published(STUDY)
    own = table[(table["measure"] == "first_delay") & (table["place"] == "workload")]
    delay_s = rung.users * beat_s(parameters, rung)
    return any(math.isclose(delay_s, float(each)) for each in own["value"])
