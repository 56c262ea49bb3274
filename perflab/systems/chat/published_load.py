"""The published load of the chat service, and the differences of a run from it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import cache

from perflab.recordings import Remark, published, published_value
from perflab.statistics.percentiles import needed_n
from perflab.systems.chat.rungs import BOUND, RUNGS, SCENARIOS
from perflab.systems.chat.service import (
    BASE_CASE,
    STUDY,
    TOGETHER,
    ChatParameters,
    Rung,
    actions,
    beat_s,
    expected_pings,
)

RESULTS = "published results"


def load_warnings(parameters: ChatParameters, rungs: Mapping[str, Rung]) -> list[Remark]:
    """Say where the load of rungs differs from that of the published rows that they repeat."""
    texts = {}
    different = dict.fromkeys(
        words
        for name, rung in rungs.items()
        if name in SCENARIOS
        for words in differences(parameters, rung, name)
    )
    if different:
        advice = "" if parameters.preset == "published" else "; preset=published has that load"
        texts["load"] = f"published sizes are not compared: {'; '.join(different)}{advice}"
    if any(rung.first_delay in TOGETHER for rung in rungs.values()):
        texts["begin_together"] = (
            "where logins are over before messages start, all users begin within "
            f"{parameters.action_s:g} s; the study's began as slowly as they had joined"
        )
    return [Remark(code=f"chat.{code}", text=text) for code, text in texts.items()]


def differences(parameters: ChatParameters, rung: Rung, name: str) -> list[str]:
    """Return in words how the load of a rung differs from that of the published row ``name``.

    From the first row without deflate on, first delays are users times the delay between joins.
    The study does not state what kept logins out of the earlier rows; this function takes the same
    delay for them. The cost of logins must be the default, because one could else try costs until
    a size fits.
    """
    scenario = SCENARIOS[name]
    joins = (RESULTS, BOUND) if scenario == BOUND else BASE_CASE[1:]
    default = ChatParameters.model_fields["bcrypt_rounds"].get_default()
    compared = [
        (beat_s(parameters, rung), published_value(STUDY, *joins, "join_delay"),
         "users join every {:g} s"),
        (actions(parameters, rung), published_value(*BASE_CASE, "actions"),
         "users take {:g} actions"),
        (rung.users, _published_users(scenario), "there are {:g} users"),
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
        texts.append(f"the first delay is '{rung.first_delay}' (that row's: '{first_delay}')")
    if parameters.preset != "published":
        texts.append("pings do not wait for the answer of the one before (published: they do)")
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


def has_unknown_delay(name: str) -> bool:
    """Return whether the study leaves the first delay of a row unstated."""
    rung = RUNGS[name]
    return rung.deflate == "on" and rung.first_delay != "action"


def too_few_pings(parameters: ChatParameters, rungs: Collection[Rung], share: int) -> str:
    """Return why a trial has too few pings for a percentile, or an empty string."""
    fewest = min(expected_pings(parameters, rung) for rung in rungs)
    needed = needed_n(share)
    if fewest >= needed:
        return ""
    return (
        f"a p{share} needs {needed} pings; at one a second the shorter trial has about {fewest} "
        "(at the published load so had the study)"
    )


@cache
def _published_users(scenario: str) -> int:
    table = published(STUDY)
    rows = table[(table["place"] == RESULTS) & (table["measure"] == "users")]
    stated = dict(zip(rows["scenario"], rows["value"], strict=True))
    return int(stated.get(scenario) or published_value(*BASE_CASE, "users"))
