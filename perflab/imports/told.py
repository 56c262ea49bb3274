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


def declared_responses(tool: str) -> list[Response]:
    """Return the responses of imported trials; each says who told it."""
    tells = f"(as {tool} tells it)"
    names = {"mean": "mean service time", "min": "shortest service time"}
    names |= {share_name(each): f"p{each:g} of the service time" for each in SHARES}
    names |= {"max": "longest service time"}
    throughput = Response(
        name=f"{PREFIX}_throughput_rps", title=f"throughput {tells}", unit="requests/s",
        heading="told requests/s", noun="throughput", better="more", typical=True,
    )  # fmt: skip
    return [
        throughput,
        *(
            Response(
                name=f"{PREFIX}_service_{name}_ms", title=f"{title} {tells}", unit="ms",
                heading=f"told service {name.replace('_', '.')} ms", noun="service time",
                better="less", typical=name in TYPICAL,
            )
            for name, title in names.items()
        ),
    ]  # fmt: skip


def told_columns(told: Told) -> dict[str, Any]:
    """Return the columns of a load; NaN, and -1 for counts, is what the tool does not tell."""
    times = {
        f"{PREFIX}_service_{name}_ms": told.times_ms.get(name, math.nan)
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


def remarks_of(told: Told, tool: str) -> list[Remark]:
    """Return what is to be known of a load's numbers."""
    text = "no planned instants: response time is not computed, the times are service times"
    found = [*told.remarks, Remark(code="import.service_time", side="client", text=text)]
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
