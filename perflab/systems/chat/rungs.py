"""The rungs of the published ladder (``rungs.csv``), and its steps (``steps.csv``).

The study claims an effect of each step on latency.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from perflab.parameters import Parameters, did_you_mean
from perflab.recordings import Contrast, published, stated
from perflab.recordings.contrast_rows import ContrastRow
from perflab.recordings.published_results import Direction
from perflab.recordings.typed_rows import rows_of
from perflab.statistics.quantiles import needed_n
from perflab.systems.chat.stacks import STUDY, ChatParameters, Rung, expected_pings
from perflab.trials.ladders import read_ladder

RESULTS, TABLE = "published results", "chat study, published results"
PERCENTILES = (90, 95, 99)
# The two rungs that show what logins cost.
COSTLY, FREE = "costly_logins", "free_logins"
HERE = Path(__file__).parent
NUMBER = re.compile(r"[1-9][0-9]{0,4}")
# The service takes 100,000 accounts; one is the monitor's.
MOST_USERS = 99_999
# What the study claims beside the effects of steps on latency.
CONTRASTS = rows_of(HERE / "contrasts.csv", ContrastRow)


class PublishedRung(Rung):
    """A rung of the table; ``published_row`` is the row of the study that has its settings."""

    published_row: str = ""


# The study's profile found that its server serialized a message anew for every receiver; it mended
# that before it measured protobuf. Of json and orjson it does not say which way they were measured.
RUNGS = read_ladder(HERE / "rungs.csv", PublishedRung).rungs
SCENARIOS = {name: rung.published_row for name, rung in RUNGS.items() if rung.published_row}


def rung_named(name: str) -> Rung:
    """Return a rung of ``RUNGS``, or one with another number of users (``best_800``).

    Raises ValueError for an unknown name.
    """
    if name in RUNGS:
        return RUNGS[name]
    kind, _, users = name.rpartition("_")
    if kind in RUNGS and NUMBER.fullmatch(users) and int(users) <= MOST_USERS:
        return RUNGS[kind].model_copy(update={"users": int(users), "published_row": ""})
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


class Change(Parameters):
    """One step: the rung after it, the rung before it, and the study's claim about latency.

    A step without a ``claim_id`` goes beyond the study. ``binds``: the step needs a core of its
    own.
    """

    after: str
    before: str
    claim_id: str = ""
    # Not None: a cell "none" would be read as nothing.
    claimed: Direction | Literal[""] = ""
    binds: bool = False


CHANGES = rows_of(HERE / "steps.csv", Change)
# Only these rows have trials with enough pings for a p99; each is compared with the first of them.
AMONG_MANY = tuple(
    Change(after=f"no_deflate_{users}", before="no_deflate_300", claimed="greater")
    for users in (325, 350, 375, 400, 425)
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
            yield Change(after=name, before=first)


def _contrast(change: Change, share: int, refusal: str) -> Contrast:
    claim = f"beyond the study: {change.after} against {change.before}"
    place, ratio = f"p{share}", None
    if change.claim_id:
        claim, ratio = stated(STUDY, change.claim_id), published_ratio(change, share)
    if ratio is not None and change.claimed != direction(ratio):
        place = f"{place}; the study's own figures of pings say {ratio:.2f}"
    return Contrast(
        name=f"{change.after} against {change.before}, p{share}",
        claim=f"{claim} ({place})",
        response=f"delivery_p{share}_ms",
        numerator={"rung": change.after},
        denominator={"rung": change.before},
        published_direction=change.claimed or None,
        source=TABLE if change.claim_id else "none",
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
    return after[share] / before[share] if after and before else None


def direction(ratio: float) -> Direction:
    """Return on which side of 1 a ratio lies."""
    return "greater" if ratio > 1 else "smaller"
