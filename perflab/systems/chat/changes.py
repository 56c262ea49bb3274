"""The steps of the ladder: what each change is claimed to do to latency."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from perflab.recordings import Contrast
from perflab.systems.chat.rungs import PERCENTILES, published_ms
from perflab.systems.chat.service import Rung

TABLE = "chat study, published results"
Direction = Literal["greater", "smaller"]


@dataclass(frozen=True)
class Change:
    """One step: the rung after it, the rung before it, and what the study claims of latency.

    Without a ``claim`` the step lies beyond the study. ``binds``: it needs cores of its own.
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
    Change("msgspec", "orjson"),
    Change("msgpack", "orjson"),
    _lowers("once", "json", "serializing a message once instead of once for every receiver"),
    Change("each", "json"),
    _lowers("uvloop", "protobuf", "uvloop"),
    _lowers("no_deflate", "asyncio_no_deflate", "uvloop, once permessage-deflate is off,"),
    Change("json_uvloop", "json"),
    _lowers("no_deflate", "uvloop", "turning permessage-deflate off"),
    Change("json_no_deflate", "json"),
    _raises("json_login", "json", "logins under way"),
    _raises("orjson_login", "orjson", "logins under way (orjson)"),
    _raises("protobuf_login", "protobuf", "logins under way (protobuf)"),
    _raises("uvloop_login", "uvloop", "logins under way (uvloop)"),
    _lowers("orjson_login", "json_login", "orjson instead of json, with logins,"),
    _lowers("protobuf_login", "orjson_login", "protobuf instead of orjson, with logins,"),
    _lowers("uvloop_login", "protobuf_login", "uvloop, with logins,"),
    Change("json_free_login", "json_login"),
    Change("json_thread_login", "json_login"),
    Change("json_argon2_login", "json_login"),
    _raises("protobuf_300", "protobuf", "300 users instead of 250"),
    _raises("uvloop_300", "uvloop_200", "300 users instead of 200 (published: under cProfile)"),
    *(
        _raises(f"no_deflate_{users}", "no_deflate", f"{users} users instead of 250")
        for users in (300, 325, 350, 375, 400, 425)
    ),
    Change("json_scaled", "json"),
    Change("json_spread", "json"),
    Change("slow_joins_425", "no_deflate_425"),
    Change("no_deflate_425_spread", "no_deflate_425"),
    Change("bound_425", "no_deflate_425", "binding to a core, with slower joins, lowers latency",
           "smaller", binds=True),
    Change("bound_only_425", "no_deflate_425", binds=True),
    Change("no_deflate_once", "no_deflate"),
    Change("no_deflate_login", "no_deflate"),
    Change("no_deflate_scaled", "no_deflate"),
    Change("sansio", "no_deflate"),
    Change("write_behind", "no_deflate"),
    Change("best", "no_deflate"),
    Change("best_425", "no_deflate_425"),
)  # fmt: skip


def contrasts(have: Mapping[str, Rung], refusals: Mapping[str, str]) -> Iterator[Contrast]:
    """Yield a contrast of every percentile for each step whose rungs are there.

    A refused step needs only the rung before it. A rung of no step is compared with the first that
    has as many users. No published size stands beside them: those are of a monitor's pings, these
    of deliveries, and a number is compared with the same estimand only.

    Parameters
    ----------
    have : mapping
        The rungs of the run, by name.
    refusals : mapping
        Why a step cannot be tested on this machine, by its later rung.
    """
    steps = [
        change
        for change in CHANGES
        if change.before in have and (change.after in have or change.after in refusals)
    ]
    for change in [*steps, *_further(have, steps)]:
        for share in PERCENTILES:
            yield _contrast(change, share, refusals.get(change.after, ""))


def _further(have: Mapping[str, Rung], steps: Collection[Change]) -> Iterator[Change]:
    in_a_step = {name for step in steps for name in (step.after, step.before)}
    first_of: dict[int, str] = {}
    for name, rung in have.items():
        first = first_of.setdefault(rung.users, name)
        if name not in in_a_step and name != first:
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


def published_ratio(change: Change, share: int) -> float | None:
    """Return the ratio of two published percentiles; None where the study has not both."""
    after, before = published_ms(change.after), published_ms(change.before)
    return after[share] / before[share] if change.claim and after and before else None


def direction(ratio: float) -> Direction:
    """Return to which side of 1 a ratio lies."""
    return "greater" if ratio > 1 else "smaller"
