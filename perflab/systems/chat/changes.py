"""The steps of the ladder, and the claimed effect of each change on latency."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from perflab.recordings import Contrast
from perflab.systems.chat.rungs import LADDER_USERS, PERCENTILES, published_ms
from perflab.systems.chat.service import Rung

TABLE = "chat study, published results"
Direction = Literal["greater", "smaller"]


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
        for users in (300, 325, 350, 375, 400, 425)
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
# Returns why trials of two rungs have too few pings for a percentile, or an empty string.
TooFew = Callable[[Collection[Rung], int], str]


def contrasts(rungs: Mapping[str, Rung], refusals: Mapping[str, str]) -> Iterator[Contrast]:
    """Yield a contrast of every percentile for each step whose rungs the run has.

    A refused step needs only the rung before it. A rung of no step is compared with the first rung
    that has as many users. The contrasts have no published size, because published percentiles are
    of a monitor's pings and these of deliveries: another estimand (see :func:`ping_contrasts`).

    Parameters
    ----------
    rungs : mapping
        The rungs of the run, by name.
    refusals : mapping
        Why a step cannot be tested on this machine, by its later rung.
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
    rungs: Mapping[str, Rung],
    as_published: Collection[str],
    unstated: Collection[str],
    refusals: Mapping[str, str],
    too_few: TooFew,
) -> Iterator[Contrast]:
    """Yield a contrast of pings, with its published size, for each step between published rows.

    The direction comes from the published numbers, not from the study's words: :func:`contrasts`
    (which has the same parameters) tests those on deliveries. Only ratios are compared; the unknown
    distance between the study's two machines is part of both rows and pulls ratios to 1.
    ``as_published`` names the rungs at the published load, and only they are compared; ``unstated``
    names those whose first delay the study does not state.
    """
    tested = {*as_published, *refusals}
    for change in (*CHANGES, *AMONG_MANY):
        if change.before not in as_published or change.after not in tested:
            continue
        for share in (99,) if change in AMONG_MANY else PERCENTILES:
            ratio = published_ratio(change, share)
            if ratio is not None:
                compared = [rungs[name] for name in (change.after, change.before) if name in rungs]
                refusal = refusals.get(change.after, "") or too_few(compared, share)
                yield _of_pings(change, share, ratio, refusal, unstated)


def _of_pings(
    change: Change, share: int, ratio: float, refusal: str, unstated: Collection[str]
) -> Contrast:
    after, before = (published_ms(name)[share] for name in (change.after, change.before))
    with_unstated_delay = [name for name in (change.after, change.before) if name in unstated]
    remark = (
        f"; the study does not say how logins are kept out of {' and '.join(with_unstated_delay)}"
    )
    return Contrast(
        name=f"{change.after} against {change.before}, p{share} of pings",
        claim=f"{change.after} has {ratio:.3g} times the p{share} of {change.before}: "
        f"{after:g} against {before:g} ms of pings{remark if with_unstated_delay else ''}",
        response=f"all_ping_p{share}_ms",
        numerator={"rung": change.after},
        denominator={"rung": change.before},
        published_ratio=ratio,
        published_direction=direction(ratio),
        source=TABLE,
        not_testable=refusal,
    )


def published_ratio(change: Change, share: int) -> float | None:
    """Return the ratio of two published percentiles, or None if one of them was not published."""
    after, before = published_ms(change.after), published_ms(change.before)
    return after[share] / before[share] if change.claim and after and before else None


def direction(ratio: float) -> Direction:
    """Return on which side of 1 a ratio lies."""
    return "greater" if ratio > 1 else "smaller"
