"""The rungs of the published ladder, and those that take its mixed effects apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from perflab.errors import ParameterError
from perflab.parameters import did_you_mean
from perflab.recordings import published, published_value
from perflab.systems.chat.service import STUDY, Rung

PERCENTILES = (90, 95, 99)
# The two rungs that show what logins cost.
COSTLY, FREE = "costly_logins", "free_logins"
LADDER_USERS = (300, 325, 350, 375, 400, 425)
NO_DEFLATE = "+ uvloop, no permessage-deflate"
BOUND = f"{NO_DEFLATE}, 425 users, main process bound to one core, 0.35 s between joins"
# The join delay of the study's last step over that of the steps before it.
SLOW_JOINS = published_value(STUDY, "published results", BOUND, "join_delay") / published_value(
    STUDY, "workload", "base case", "join_delay"
)

# The study's profile found that its server serialized a message anew for every receiver.
_BASE = Rung(serialize="per_send")
_PROTOBUF = Rung(serialize="per_send", codec="protobuf")
_UVLOOP = Rung(serialize="per_send", codec="protobuf", loop="uvloop")
_PLAIN = Rung(serialize="per_send", codec="protobuf", loop="uvloop", deflate="off")
_BEST = Rung(
    serialize="per_message",
    codec="msgspec",
    loop="uvloop",
    deflate="off",
    websocket="websockets-sansio",
    commit="write_behind",
)


def _but(rung: Rung, **changes: object) -> Rung:
    return rung.model_copy(update=changes)


def _with_logins(rung: Rung) -> Rung:
    return _but(rung, first_delay="action")


RUNGS: Mapping[str, Rung] = {
    "json": _BASE,
    "orjson": _but(_BASE, codec="orjson"),
    "protobuf": _PROTOBUF,
    "json_login": _with_logins(_BASE),
    "orjson_login": _with_logins(_but(_BASE, codec="orjson")),
    "protobuf_login": _with_logins(_PROTOBUF),
    "protobuf_300": _but(_PROTOBUF, users=300),
    "uvloop": _UVLOOP,
    "uvloop_login": _with_logins(_UVLOOP),
    # Published under cProfile, the second rung probably.
    "uvloop_200": _but(_UVLOOP, users=200, cprofile="on"),
    "uvloop_300": _but(_UVLOOP, users=300, cprofile="on"),
    "no_deflate": _PLAIN,
    **{f"no_deflate_{users}": _but(_PLAIN, users=users) for users in LADDER_USERS},
    "bound_425": _but(_PLAIN, users=425, bind="on", join_factor=SLOW_JOINS),
    # Beyond the study: single changes, and delays that the study changed along with others.
    "once": _but(_BASE, serialize="per_message"),
    "json_spread": _but(_BASE, first_delay="spread"),
    "no_deflate_425_spread": _but(_PLAIN, users=425, first_delay="spread"),
    "write_behind": _but(_PLAIN, commit="write_behind"),
    "asyncio_no_deflate": _but(_PLAIN, loop="asyncio"),
    "slow_joins_425": _but(_PLAIN, users=425, join_factor=SLOW_JOINS),
    "bound_only_425": _but(_PLAIN, users=425, bind="on"),
    "best": _BEST,
}
SCENARIOS: Mapping[str, str] = {
    "json": "JSON, no login load",
    "orjson": "orjson, no login load",
    "protobuf": "protobuf, no login load",
    "json_login": "JSON, with login",
    "orjson_login": "orjson, with login",
    "protobuf_login": "protobuf, with login",
    "protobuf_300": "protobuf, 300 users",
    "uvloop": "+ uvloop, no login",
    "uvloop_login": "+ uvloop, with login",
    "uvloop_200": "+ uvloop, 200 users under cProfile",
    "uvloop_300": "+ uvloop, 300 users",
    "no_deflate": f"{NO_DEFLATE}, 250 users",
    **{f"no_deflate_{users}": f"{NO_DEFLATE}, {users} users" for users in LADDER_USERS},
    "bound_425": BOUND,
}
NUMBER = re.compile(r"[1-9][0-9]{0,4}")
# The service takes 100,000 accounts; one is the monitor's.
MOST_USERS = 99_999


def rung_named(name: str) -> Rung:
    """Return a rung of ``RUNGS``, or one with another number of users (``best_800``).

    Raises
    ------
    ParameterError
        The name is unknown; the message proposes the nearest known name.
    """
    if name in RUNGS:
        return RUNGS[name]
    kind, _, users = name.rpartition("_")
    if kind in RUNGS and NUMBER.fullmatch(users) and int(users) <= MOST_USERS:
        return _but(RUNGS[kind], users=int(users))
    choices = (
        f"there are: {', '.join(RUNGS)}; and each with a number of users behind it (json_300), at "
        f"most {MOST_USERS}"
    )
    raise ParameterError("rungs", [f"no rung '{name}'{did_you_mean(name, RUNGS)}; {choices}"])


@cache
def published_ms(name: str) -> dict[int, float]:
    """Return the published percentiles of a rung in ms; empty if the study has none."""
    if name not in SCENARIOS:
        return {}
    table = published(STUDY)
    rows = table[(table["place"] == "published results") & (table["scenario"] == SCENARIOS[name])]
    values = dict(zip(rows["measure"], rows["value"], strict=True))
    return {share: float(values[f"p{share}_latency"]) for share in PERCENTILES}


@dataclass(frozen=True)
class PublishedRow:
    """The published row of a treatment: percentiles of pings in ms by name (``p90``).

    ``same_load``: the treatment has the row's load; only then may a size be compared.
    """

    ms: Mapping[str, float]
    same_load: bool


def published_of(levels: Mapping[str, str]) -> PublishedRow:
    """Return the published row of a treatment with these levels; most have none."""
    names = {scenario: name for name, scenario in SCENARIOS.items()}
    same_load_scenario = levels.get("scenario", "")
    rung = names.get(same_load_scenario) or levels.get("rung", "")
    values = {f"p{share}": value for share, value in published_ms(rung).items()}
    return PublishedRow(values, bool(same_load_scenario))
