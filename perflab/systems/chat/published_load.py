"""The published load of the chat service, and what differs from it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import cache

from perflab.percentiles import needed_n
from perflab.recordings import Remark, published, published_value
from perflab.systems.chat.rungs import BOUND, RUNGS, SCENARIOS
from perflab.systems.chat.service import (
    STUDY,
    TOGETHER,
    ChatParameters,
    Rung,
    actions,
    beat_s,
    expected_pings,
)

RESULTS = "published results"
# Where the study says how far apart users join.
BASE_JOINS = ("workload", "base case", "join_delay")
BOUND_JOINS = (RESULTS, BOUND, "join_delay")


def load_warnings(
    parameters: ChatParameters, rungs: Mapping[str, Rung], of_rows: Collection[str] | None = None
) -> list[Remark]:
    """Say where the load is not as published.

    ``of_rows`` names the rungs whose sizes could be compared; none: all.
    """
    compared = [name for name in rungs if of_rows is None or name in of_rows]
    found = dict.fromkeys(
        each for name in compared for each in differences(parameters, rungs[name], name)
    )
    texts = {}
    if found:
        advice = "" if parameters.preset == "published" else "; preset=published has that load"
        texts["load"] = f"published sizes are not compared: {'; '.join(found)}{advice}"
    if any(rung.first_delay in TOGETHER for rung in rungs.values()):
        texts["begin_together"] = (
            "where logins are over before messages start, all users begin within "
            f"{parameters.action_s:g} s; the study's began as slowly as they had joined"
        )
    return [Remark(code=f"chat.{code}", text=text) for code, text in texts.items()]


def published_exponent() -> float:
    """Return b of the published volume = a users^b."""
    return published_value(STUDY, "system", "all", "volume_users_exponent")


def as_published(parameters: ChatParameters, rung: Rung, name: str = "") -> bool:
    """Say whether a published size may be compared; see :func:`differences`."""
    return not differences(parameters, rung, name)


def differences(parameters: ChatParameters, rung: Rung, name: str = "") -> list[str]:
    """Return in what the load of a rung differs from the study's, in words.

    A rung that is ``name``\\ d for a row of the study has to have that row's users, joins and first
    delay; any other those of one row or another.
    """
    return [
        *volume_differences(parameters),
        *_joins(parameters, rung, name),
        *_actions(parameters, rung),
        *_users(rung, name),
        *_first_delay(parameters, rung, name),
        *_pings(parameters),
        *_logins(parameters),
    ]


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


def too_few_pings(parameters: ChatParameters, rungs: Collection[Rung], share: int) -> str:
    """Return why no percentile of pings can be told from a trial; empty where one can."""
    fewest = min(expected_pings(parameters, rung) for rung in rungs)
    needed = needed_n(share)
    if fewest >= needed:
        return ""
    return (
        f"a p{share} needs {needed} pings; at one a second the shorter trial has about {fewest} "
        "(at the published load so had the study)"
    )


def _joins(parameters: ChatParameters, rung: Rung, name: str) -> list[str]:
    own_s = beat_s(parameters, rung)
    places = [BASE_JOINS, BOUND_JOINS]
    if name in SCENARIOS:
        places = [BOUND_JOINS if SCENARIOS[name] == BOUND else BASE_JOINS]
    wanted_s = [published_value(STUDY, *place) for place in places]
    found = []
    if not any(math.isclose(own_s, each) for each in wanted_s):
        listed = " or ".join(f"{each:g}" for each in wanted_s)
        found.append(f"users join every {own_s:g} s (published: {listed} s)")
    if rung.ramp_s is not None and rung.first_delay in TOGETHER:
        found.append(f"users join within {rung.ramp_s:g} s")
    return found


def _actions(parameters: ChatParameters, rung: Rung) -> list[str]:
    wanted = published_value(STUDY, "workload", "base case", "actions")
    if actions(parameters, rung) == wanted:
        return []
    return [f"users take {actions(parameters, rung)} actions (published: {wanted:g})"]


def _users(rung: Rung, name: str) -> list[str]:
    if name not in SCENARIOS:
        return []
    wanted = _published_users(SCENARIOS[name])
    return [] if rung.users == wanted else [f"there are {rung.users} users (published: {wanted})"]


@cache
def _published_users(scenario: str) -> int:
    table = published(STUDY)
    own = table[(table["place"] == RESULTS) & (table["measure"] == "users")]
    stated = dict(zip(own["scenario"], own["value"], strict=True))
    return int(stated.get(scenario) or published_value(STUDY, "workload", "base case", "users"))


def _first_delay(parameters: ChatParameters, rung: Rung, name: str) -> list[str]:
    if name in SCENARIOS:
        found = _is_the_rows_delay(parameters, rung, name)
    else:
        found = _is_some_rows_delay(parameters, rung)
    if found:
        return []
    return [f"the first delay is '{rung.first_delay}', which the study did not have"]


def _is_the_rows_delay(parameters: ChatParameters, rung: Rung, name: str) -> bool:
    """Say whether users begin as those of a row did, as far as the study says how they did.

    From the first row without deflate on, first delays are users times the delay between joins.
    What kept logins out of the earlier rows is not stated; that delay is taken for them, too.
    """
    if RUNGS[name].first_delay == "action":
        return rung.first_delay == "action" and _is_base_delay(parameters)
    return rung.first_delay == "scaled"


def has_unknown_delay(name: str) -> bool:
    """Say whether a rung is one of the rows whose first delay the study does not state."""
    rung = RUNGS[name]
    return name in SCENARIOS and rung.deflate == "on" and rung.first_delay != "action"


def _is_some_rows_delay(parameters: ChatParameters, rung: Rung) -> bool:
    if rung.first_delay == "action":
        return _is_base_delay(parameters)
    if rung.first_delay != "scaled":
        return False
    delay_s = rung.users * beat_s(parameters, rung)
    return any(math.isclose(delay_s, each) for each in _published_delays_s())


@cache
def _published_delays_s() -> list[float]:
    table = published(STUDY)
    own = table[(table["measure"] == "first_delay") & (table["place"] == "workload")]
    return [float(each) for each in own["value"]]


def _is_base_delay(parameters: ChatParameters) -> bool:
    return parameters.action_s == published_value(STUDY, "workload", "base case", "first_delay")


def _pings(parameters: ChatParameters) -> list[str]:
    if parameters.preset == "published":
        return []
    return ["pings do not wait for the answer of the one before (published: they do)"]


def _logins(parameters: ChatParameters) -> list[str]:
    """Hold the cost of logins to the default: else one could try costs until a size fits."""
    default = ChatParameters.model_fields["bcrypt_rounds"].get_default()
    if parameters.bcrypt_rounds == default:
        return []
    return [f"bcrypt_rounds is {parameters.bcrypt_rounds} (not published, by default: {default})"]
