"""What a tool tells of one load, and how that stands in a recording: as the tool tells it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perflab.percentiles import needed_n
from perflab.recordings import Reason, Remark, Response

# The lab's own columns are other numbers: nothing that puts both into one table mixes them.
PREFIX = "told"
SHARES = (50, 66, 75, 80, 90, 95, 98, 99, 99.9, 99.99, 99.999)
TYPICAL = ("mean", "p50", "p95", "p99")
UNKNOWN = -1


@dataclass(frozen=True)
class Told:
    """What a tool tells of one load; None and NaN stand for what it does not tell.

    ``times_ms`` are statistics of its times by name (``mean``, ``p50``, ``p99_9``, ``max``).
    """

    requests: int
    failures: int | None
    duration_s: float
    throughput_rps: float
    times_ms: Mapping[str, float]
    remarks: tuple[Remark, ...] = ()


def share_name(percent: float) -> str:
    """Return what a percentile (0 to 100) is called in columns: ``p99``, ``p99_9``."""
    return f"p{percent:.10g}".replace(".", "_")


def times_word(corrected: bool) -> str:
    """Return what the tool's times are: ``response`` if they count from its plan, else service."""
    return "response" if corrected else "service"


def declared_responses(tool: str, corrected: bool) -> list[Response]:
    """Return the responses of imported trials; each says who told it."""
    tells, word = f"(as {tool} tells it)", times_word(corrected)
    names = {"mean": f"mean {word} time", "min": f"shortest {word} time"}
    names |= {share_name(each): f"p{each:g} of the {word} time" for each in SHARES}
    names |= {"max": f"longest {word} time"}
    throughput = Response(
        name=f"{PREFIX}_throughput_rps", title=f"throughput {tells}", unit="requests/s",
        heading="told requests/s", noun="throughput", better="more", typical=True,
    )  # fmt: skip
    return [
        throughput,
        *(
            Response(
                name=f"{PREFIX}_{word}_{name}_ms", title=f"{title} {tells}", unit="ms",
                heading=f"told {word} {name.replace('_', '.')} ms", noun=f"{word} time",
                better="less", typical=name in TYPICAL,
            )
            for name, title in names.items()
        ),
    ]  # fmt: skip


def told_columns(told: Told, corrected: bool) -> dict[str, Any]:
    """Return the columns of a load; NaN, and -1 for counts, is what the tool does not tell."""
    word = times_word(corrected)
    times = {
        f"{PREFIX}_{word}_{name}_ms": told.times_ms.get(name, math.nan)
        for name in ("mean", "min", *map(share_name, SHARES), "max")
    }
    return {
        "requests": told.requests,
        "errors": UNKNOWN if told.failures is None else told.failures,
        "unsent": UNKNOWN,
        "capped": UNKNOWN,
        f"{PREFIX}_duration_s": told.duration_s,
        f"{PREFIX}_throughput_rps": told.throughput_rps,
        **times,
    }


def not_judged(tool: str) -> Reason:
    """Return why an imported trial is neither valid nor invalid."""
    text = (
        f"not judged: {tool} tells nothing of itself (its lag, stalls and CPU), nor of the machine"
    )
    return Reason(code="import.not_judged", side="unknown", text=text)


def remarks_of(told: Told, tool: str, corrected: bool) -> list[Remark]:
    """Return what is to be known of a load's numbers."""
    found = [*told.remarks]
    if times_word(corrected) == "service":
        text = "no planned instants: response time is not computed, the times are service times"
        found.append(Remark(code="import.service_time", side="client", text=text))
    named = {share_name(share): share for share in SHARES}
    few = [
        f"p{named[name]:g}"
        for name, value in told.times_ms.items()
        if name in named and not math.isnan(value) and told.requests < needed_n(named[name])
    ]
    if few:
        text = f"{told.requests:,} requests are too few for {', '.join(few)}; {tool} gives it"
        found.append(Remark(code="import.too_few", side="client", text=text))
    return found
