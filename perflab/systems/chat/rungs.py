"""The rungs of the published ladder, its steps, and the claimed effect of each on latency."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from perflab.parameters import did_you_mean
from perflab.recordings import Contrast, published, published_value
from perflab.recordings.published_results import Direction
from perflab.statistics.quantiles import needed_n
from perflab.systems.chat.stacks import STUDY, ChatParameters, Rung, expected_pings

RESULTS, TABLE = "published results", "chat study, published results"
PERCENTILES = (90, 95, 99)
# The two rungs that show what logins cost.
COSTLY, FREE = "costly_logins", "free_logins"
LADDER_USERS = (300, 325, 350, 375, 400, 425)
NO_DEFLATE = "+ uvloop, no permessage-deflate"
BOUND = f"{NO_DEFLATE}, 425 users, main process bound to one core, 0.35 s between joins"
# The join delay of the study's last step over that of the steps before it.
SLOW_JOINS = published_value(STUDY, RESULTS, BOUND, "join_delay") / published_value(
    STUDY, "workload", "base case", "join_delay"
)

# The study's profile found that its server serialized a message anew for every receiver.
_BASE = Rung(serialize="per_send")
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


_PROTOBUF = _but(_BASE, codec="protobuf")
_UVLOOP = _but(_PROTOBUF, loop="uvloop")
_PLAIN = _but(_UVLOOP, deflate="off")

RUNGS: Mapping[str, Rung] = {
    "json": _BASE,
    "orjson": _but(_BASE, codec="orjson"),
    "protobuf": _PROTOBUF,
    "json_login": _but(_BASE, first_delay="action"),
    "orjson_login": _but(_BASE, codec="orjson", first_delay="action"),
    "protobuf_login": _but(_PROTOBUF, first_delay="action"),
    "protobuf_300": _but(_PROTOBUF, users=300),
    "uvloop": _UVLOOP,
    "uvloop_login": _but(_UVLOOP, first_delay="action"),
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

    Raises ValueError for an unknown name.
    """
    if name in RUNGS:
        return RUNGS[name]
    kind, _, users = name.rpartition("_")
    if kind in RUNGS and NUMBER.fullmatch(users) and int(users) <= MOST_USERS:
        return _but(RUNGS[kind], users=int(users))
    choices = (
        f"there are: {', '.join(RUNGS)}; a number of users may follow each name (json_300), at "
        f"most {MOST_USERS}"
    )
    raise ValueError(f"no rung '{name}'{did_you_mean(name, RUNGS)}; {choices}")


@cache
def published_ms(name: str) -> dict[int, float]:
    """Return the published percentiles of a rung in ms; empty if the study has none."""
    if name not in SCENARIOS:
        return {}
    table = published(STUDY)
    rows = table[(table["place"] == RESULTS) & (table["scenario"] == SCENARIOS[name])]
    values = rows.set_index("measure")["value"]
    return {share: float(values[f"p{share}_latency"]) for share in PERCENTILES}


def published_of(levels: Mapping[str, str]) -> tuple[dict[str, float], bool]:
    """Return the published percentiles of pings in ms by name (``p90``), if a treatment has any.

    The second value says whether the treatment has the load of that row; only then may a size be
    compared.
    """
    names = {scenario: name for name, scenario in SCENARIOS.items()}
    scenario = levels.get("scenario", "")
    published = published_ms(names.get(scenario) or levels.get("rung", ""))
    return {f"p{share}": value for share, value in published.items()}, bool(scenario)


@dataclass(frozen=True)
class Change:
    """One step: the rung after it, the rung before it, and the study's claim about latency.

    A step without a ``claim`` goes beyond the study. ``binds``: the step needs a core of its own.
    """

    after: str
    before: str
    claim: str = ""
    claimed: Direction | None = None
    binds: bool = False


def _lowers(after: str, before: str, what: str) -> Change:
    return Change(after, before, f"{what} lowers latency", "smaller")


def _raises(after: str, before: str, what: str) -> Change:
    return Change(after, before, f"{what} raise latency", "greater")


CHANGES = (
    _lowers("orjson", "json", "orjson instead of json"),
    _lowers("protobuf", "json", "protobuf instead of json"),
    Change("protobuf", "orjson", "protobuf beats orjson end to end", "smaller"),
    _lowers("once", "json", "serializing a message once instead of once for every receiver"),
    _lowers("uvloop", "protobuf", "uvloop"),
    _lowers("no_deflate", "asyncio_no_deflate", "uvloop, once permessage-deflate is off,"),
    _lowers("no_deflate", "uvloop", "turning permessage-deflate off"),
    _raises("json_login", "json", "logins under way"),
    _raises("orjson_login", "orjson", "logins under way (orjson)"),
    _raises("protobuf_login", "protobuf", "logins under way (protobuf)"),
    _raises("uvloop_login", "uvloop", "logins under way (uvloop)"),
    _lowers("orjson_login", "json_login", "orjson instead of json, with logins,"),
    _lowers("protobuf_login", "orjson_login", "protobuf instead of orjson, with logins,"),
    _lowers("uvloop_login", "protobuf_login", "uvloop, with logins,"),
    _raises("protobuf_300", "protobuf", "300 users instead of 250 (protobuf)"),
    _raises("uvloop_300", "uvloop_200", "300 users instead of 200 (published: under cProfile)"),
    *(
        _raises(f"no_deflate_{users}", "no_deflate", f"{users} users instead of 250")
        for users in LADDER_USERS
    ),
    Change("json_spread", "json"),
    _lowers("slow_joins_425", "no_deflate_425", "joining more slowly, with nothing bound,"),
    Change("write_behind", "no_deflate"),
    Change("no_deflate_425_spread", "no_deflate_425"),
    Change("bound_425", "no_deflate_425", "binding to a core, with slower joins, lowers latency",
           "smaller", binds=True),
    Change("bound_only_425", "no_deflate_425", binds=True),
    Change("best", "no_deflate"),
    Change("best_425", "no_deflate_425"),
)  # fmt: skip


# Only these rows have trials with enough pings for a p99; each is compared with the first of them.
AMONG_MANY = tuple(
    _raises(f"no_deflate_{users}", "no_deflate_300", f"{users} users instead of 300")
    for users in LADDER_USERS[1:]
)


def contrasts(rungs: Mapping[str, Rung], refusals: Mapping[str, str]) -> Iterator[Contrast]:
    """Yield a contrast of every percentile of deliveries for each step whose rungs the run has.

    A refused step needs only the rung before it; ``refusals`` say, by the later rung, why a step
    cannot be tested on this machine. A rung of no step is compared with the first rung that has as
    many users. The contrasts have no published size, because published percentiles are of pings.
    """
    steps = [
        change
        for change in CHANGES
        if change.before in rungs and (change.after in rungs or change.after in refusals)
    ]
    for change in [*steps, *_further(rungs, steps)]:
        for share in PERCENTILES:
            yield _contrast(change, share, refusals.get(change.after, ""))


def _further(rungs: Mapping[str, Rung], steps: Collection[Change]) -> Iterator[Change]:
    stepped = {name for step in steps for name in (step.after, step.before)}
    first_of: dict[int, str] = {}
    for name, rung in rungs.items():
        first = first_of.setdefault(rung.users, name)
        if name not in stepped and name != first:
            yield Change(name, first)


def _contrast(change: Change, share: int, refusal: str) -> Contrast:
    claim = change.claim or f"beyond the study: {change.after} against {change.before}"
    place = f"p{share}"
    ratio = published_ratio(change, share)
    if ratio is not None and change.claimed != direction(ratio):
        place = f"{place}; the study's own figures of pings say {ratio:.2f}"
    return Contrast(
        name=f"{change.after} against {change.before}, p{share}",
        claim=f"{claim} ({place})",
        response=f"delivery_p{share}_ms",
        numerator={"rung": change.after},
        denominator={"rung": change.before},
        published_direction=change.claimed,
        source=TABLE if change.claim else "none",
        not_testable=refusal,
    )


def ping_contrasts(
    parameters: ChatParameters, rungs: Mapping[str, Rung], refusals: Mapping[str, str]
) -> Iterator[Contrast]:
    """Yield a contrast of pings, with its published size, for each step between published rows.

    The direction comes from the published numbers, not from the study's words: :func:`contrasts`
    tests those on deliveries. Only ratios are compared; the unknown distance between the study's
    two machines is part of both rows and pulls ratios to 1. Only rungs at the published load are
    compared: those that have a ``scenario``.
    """
    as_published = {name for name, rung in rungs.items() if rung.scenario}
    tested = as_published | set(refusals)
    for change in (*CHANGES, *AMONG_MANY):
        if change.before not in as_published or change.after not in tested:
            continue
        for share in (99,) if change in AMONG_MANY else PERCENTILES:
            ratio = published_ratio(change, share)
            if ratio is not None:
                compared = [rungs[name] for name in (change.after, change.before) if name in rungs]
                too_few = _too_few_pings(parameters, compared, share)
                refusal = refusals.get(change.after, "") or too_few
                yield _of_pings(change, share, ratio, refusal)


def _too_few_pings(parameters: ChatParameters, rungs: Collection[Rung], share: int) -> str:
    """Return why a trial has too few pings for a percentile, or an empty string."""
    fewest = min(expected_pings(parameters, rung) for rung in rungs)
    needed = needed_n(share)
    if fewest >= needed:
        return ""
    return (
        f"a p{share} needs {needed} pings; with one ping a second the shorter trial has about "
        f"{fewest}, and the study's trials had no more"
    )


def _of_pings(change: Change, share: int, ratio: float, refusal: str) -> Contrast:
    names = change.after, change.before
    after, before = (published_ms(name)[share] for name in names)
    unstated = " and ".join(name for name in names if _has_unknown_delay(name))
    remark = f"; the study does not say how logins are kept out of {unstated}" if unstated else ""
    return Contrast(
        name=f"{change.after} against {change.before}, p{share} of pings",
        claim=f"{change.after} has {ratio:.3g} times the p{share} of {change.before}: "
        f"{after:g} against {before:g} ms of pings{remark}",
        response=f"all_ping_p{share}_ms",
        numerator={"rung": change.after},
        denominator={"rung": change.before},
        published_ratio=ratio,
        published_direction=direction(ratio),
        source=TABLE,
        not_testable=refusal,
    )


def _has_unknown_delay(name: str) -> bool:
    """Return whether the study leaves the first delay of a row unstated."""
    return RUNGS[name].deflate == "on" and RUNGS[name].first_delay != "action"


def published_ratio(change: Change, share: int) -> float | None:
    """Return the ratio of two published percentiles, or None if one of them was not published."""
    after, before = published_ms(change.after), published_ms(change.before)
    return after[share] / before[share] if change.claim and after and before else None


def direction(ratio: float) -> Direction:
    """Return on which side of 1 a ratio lies."""
    return "greater" if ratio > 1 else "smaller"
