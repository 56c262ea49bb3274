"""What is told beside a load's numbers, and does not refuse them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from perflab.load.machine_counts import remarks_on_tcp
from perflab.load.outcome import CODES
from perflab.load.result import LoadResult
from perflab.load.times import Number, Times
from perflab.load.trend import Trend
from perflab.load.workload import Workload
from perflab.recordings.reasons import Remark
from perflab.recordings.steadiness import OF_LOAD
from perflab.sampling.tcp_counters import sockets_in_time_wait

# Of the time of the client's cores, that other guests of the machine took.
STEAL_TOLD, MAX_STEAL = 0.01, 0.10
MAX_PORTS_SHARE = 0.8


def of_load(result: LoadResult, workload: Workload) -> list[Remark]:
    """Return what was seen of a load besides its numbers."""
    texts = {}
    if result.stopped:
        text = f"the load was ended early: {result.stopped}"
        if result.failure_stop is not None:
            text += "; times and throughput are of what ended until then"
        texts["load.stopped"] = text
    if result.capped:
        text = f"{result.capped} requests waited for a free connection; see connection wait"
        texts["load.capped"] = text
    aborted = sum(int((rows["error"] == CODES["aborted"]).sum()) for rows in result.chunks())
    if aborted:
        text = f"{aborted} requests were still under way at the end and given up"
        texts["load.aborted"] = text
    unsent = sum(int((rows["error"] == CODES["unsent"]).sum()) for rows in result.chunks())
    if unsent and result.stopped:
        text = f"{unsent} requests still waited for a connection and were given up"
        texts["load.given_up"] = text
    if STEAL_TOLD < result.steal_share <= MAX_STEAL:
        texts["host.steal"] = stolen(result)
    share = sockets_in_time_wait() / port_range()
    if workload.connections.closing and share > MAX_PORTS_SHARE:
        text = f"{share:.0%} of the local ports are in TIME_WAIT; connections may soon fail"
        texts["host.ports"] = text
    told = [Remark(code=code, text=text) for code, text in texts.items()]
    return [*told, *remarks_on_tcp(result)]


def of_numbers(response: Times, trend: Trend) -> list[Remark]:
    """Return which response times cannot be given, or hold too much of the client's own time."""
    numbers = {name: each for name, each in response.numbers().items() if name != "max"}
    bounds = [
        f"{name} >= {each.at_least:.4g} ms"
        for name, each in numbers.items()
        if not np.isnan(each.at_least)
    ]
    remarks = []
    if trend.too_large:
        text = f"the load was not steady: {trend}; a longer one would have others"
        remarks.append(Remark(code=OF_LOAD, text=text))
    if bounds:
        text = f"{len(response.elapsed)} requests were cut off before their end, and could move "
        text += f"what is given as a bound: {', '.join(bounds)}"
        remarks.append(Remark(code="load.censored", text=text))
    return [*remarks, *of_client_time(numbers)]


def of_client_time(numbers: Mapping[str, Number]) -> list[Remark]:
    """Return which times hold too much of the client's own."""
    own = [
        f"{name} of {each.value:.3g} ms up to {each.client_ms:.2g} ms"
        for name, each in numbers.items()
        if each.is_the_clients and not np.isnan(each.value)
    ]
    if not own:
        return []
    text = f"more than a tenth may be the client's own time: of {', of '.join(own)}"
    text += "; marked ~, and compared with nothing"
    return [Remark(code="generator.client_time", side="client", text=text)]


def stolen(result: LoadResult) -> str:
    """Say how much of the client's cores other guests of the machine took."""
    return f"other guests of the machine took {result.steal_share:.0%} of the client's cores"


def port_range() -> int:
    """Return how many local ports connections can take."""
    try:
        low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    except OSError:
        return 28_232
    return int(high) - int(low) + 1
