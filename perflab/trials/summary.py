"""The row of a trial, computed from its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from perflab.load.checks.selfcheck import SelfCheck
from perflab.load.records.result import LoadResult, completed
from perflab.load.workload.windows import BEGIN, COUNTED, END

# After its last window a service ends what is under way.
DRAIN_NS = 1_000_000_000


def load_columns(result: LoadResult) -> dict[str, Any]:
    """Return when the measured stage was, and what became of its requests.

    What the kernel counted of TCP is of its network namespace, other processes in it included.
    """
    measured = result.requests[result.requests["stage"] == "measure"]
    return {
        "begin_ns": result.begin_ns,
        "end_ns": result.end_ns,
        "requests": len(measured),
        "errors": int((measured["error"] != "").sum()),
        "unsent": result.unsent,
        "capped": result.capped,
        "connections_opened": result.connections_opened,
        "stopped": result.stopped,
        "client_real_time": int(result.real_time),
        **result.kernel,
    }


def selfcheck_columns(check: SelfCheck) -> dict[str, Any]:
    """Return what the generator found about itself."""
    return {
        "run_delay_share": check.run_delay_share,
        "generator_lag_p50_ms": check.lag_p50_ms,
        "generator_lag_p99_ms": check.lag_p99_ms,
        "loop_delay_p99_ms": check.loop_delay_p99_ms,
        "loop_delay_max_ms": check.loop_delay_max_ms,
        "client_cpu_share": check.cpu_share,
        "littles_law_ratio": check.littles_law_ratio,
        "client_mean_late_ms": check.mean_late_ms,
        "client_stalled_share": check.stalled_share,
        "client_steal_share": check.steal_share,
        "censored": check.censored,
    }


class OnTime(NamedTuple):
    """Between which instants a load's CPU time is taken, and for how long the load was on (ns)."""

    begin_ns: int
    end_ns: int
    on_ns: int

    @classmethod
    def of(cls, result: LoadResult) -> OnTime:
        """Return that of a load: the measured stage, or of one with windows all that count.

        Around a window a service has nothing to do, or is paused: CPU time is taken from the begin
        of the first window that counts until after the last, and belongs to the windows.
        """
        if result.windows is None:
            return cls(result.begin_ns, result.end_ns, max(0, result.end_ns - result.begin_ns))
        counts = result.windows[result.windows[:, COUNTED] < result.windows[:, END]]
        if not len(counts):
            return cls(0, 0, 0)
        length_ns = int((counts[:, END] - counts[:, BEGIN]).sum())
        return cls(int(counts[0, BEGIN]), int(counts[-1, END]) + DRAIN_NS, length_ns)


def service_columns(samples: pd.DataFrame, services: Sequence[str], when: OnTime) -> dict[str, Any]:
    """Return each service's CPU share (1.0 = one core) in the stage, and its largest memory."""
    row: dict[str, Any] = {}
    for name in services:
        own = samples[samples["service"] == name]
        used_ns = cpu_used_ns(own, when.begin_ns, when.end_ns)
        row[f"cpu_share_{name}"] = used_ns / when.on_ns if when.on_ns else float("nan")
        row[f"memory_{name}_bytes"] = largest_memory(own, when.begin_ns, when.end_ns)
    return row


def cpu_us_per_success(own: pd.DataFrame, result: LoadResult) -> float:
    """Return a service's CPU time (us) for a success of the measured stage; NaN without any.

    With windows it is all CPU time of those that count, by all their successes: what is sent while
    a window settles costs CPU, too.
    """
    when = OnTime.of(result)
    if result.windows is None:
        rate = result.throughput_rps
        share = cpu_share(own, when.begin_ns, when.end_ns)
        return share * 1e6 / rate if rate > 0 else float("nan")
    done_ns = (rows["done_ns"][rows["error"] == 0] for rows in result.chunks())
    count = sum(completed(done, when.begin_ns, when.end_ns) for done in done_ns)
    used_ns = cpu_used_ns(own, when.begin_ns, when.end_ns)
    return used_ns / 1e3 / count if count else float("nan")


def largest_memory(own: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    """Return the most memory (bytes) between two instants, both interpolated; NaN without samples.

    A stage that is shorter than the time between two samples has its memory from those around it.
    """
    if own.empty:
        return float("nan")
    at, memory = own["t_ns"].to_numpy(), own["memory_bytes"].to_numpy()
    inside = memory[(at >= begin_ns) & (at <= end_ns)]
    return float(np.max([*inside, *np.interp([begin_ns, end_ns], at, memory)]))


def cpu_share(own: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    """Return CPU time over wall time between two instants, by interpolating cumulative time."""
    if end_ns <= begin_ns:
        return float("nan")
    return cpu_used_ns(own, begin_ns, end_ns) / (end_ns - begin_ns)


def cpu_used_ns(own: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    """Return the CPU time (ns) between two instants, interpolated; NaN where samples lack."""
    if len(own) < 2 or end_ns <= begin_ns:
        return float("nan")
    used = np.interp([begin_ns, end_ns], own["t_ns"].to_numpy(), own["cpu_ns"].to_numpy())
    return float(used[1] - used[0])


def identity_columns(
    trial_id: str, block: int, position: int, attempt: int, name: str, levels: Mapping[str, str]
) -> dict[str, Any]:
    """Return who the trial is."""
    return {
        "trial_id": trial_id,
        "block": block,
        "position": position,
        "attempt": attempt,
        "treatment": name,
        **{f"factor_{factor}": level for factor, level in levels.items()},
    }


def streamed_tables(result: LoadResult) -> dict[str, pd.DataFrame]:
    """Return the tables of a recording about what came over time; none where nothing came."""
    tables = {
        "messages": message_table(result.messages),
        "progress": result.progress,
        "chunks": result.stream_chunks,
    }
    return {name: table for name, table in tables.items() if len(table)}


def message_table(noted: pd.DataFrame) -> pd.DataFrame:
    """Return messages as a recording has them, from the rows that scripts noted."""
    names = ["worker", "user", "direction", "kind", "at_ns", "bytes"]
    return noted[names].assign(planned_ns=noted["key"])
