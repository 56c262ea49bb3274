"""The row of a trial, computed from its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from perflab.instruments.kernel import used_ns
from perflab.load.checks.selfcheck import SelfCheck
from perflab.load.records.result import LoadResult, completed
from perflab.load.workload.windows import BEGIN, COUNTED, END

# After its last window a service still works on requests in flight.
DRAIN_NS = 1_000_000_000


def load_columns(result: LoadResult) -> dict[str, Any]:
    """Return the instants of the measured stage, and the outcomes of its requests.

    The kernel's TCP counts cover its network namespace, with other processes in it.
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
    """The instants between which CPU time is taken, and how long the load was on (ns)."""

    begin_ns: int
    end_ns: int
    on_ns: int

    @classmethod
    def of(cls, result: LoadResult) -> OnTime:
        """Return the measured stage of a load, or the windows that count if it has windows.

        CPU time is taken from the first window that counts until after the last.
        """
        if result.windows is None:
            return cls(result.begin_ns, result.end_ns, max(0, result.end_ns - result.begin_ns))
        counts = result.windows[result.windows[:, COUNTED] < result.windows[:, END]]
        if not len(counts):
            return cls(0, 0, 0)
        length_ns = int((counts[:, END] - counts[:, BEGIN]).sum())
        return cls(int(counts[0, BEGIN]), int(counts[-1, END]) + DRAIN_NS, length_ns)


def service_columns(samples: pd.DataFrame, services: Sequence[str], when: OnTime) -> dict[str, Any]:
    """Return the CPU share (1.0 = one core) and the largest memory of each service."""
    row: dict[str, Any] = {}
    for name in services:
        of_service = samples[samples["service"] == name]
        used_ns = cpu_used_ns(of_service, when.begin_ns, when.end_ns)
        row[f"cpu_share_{name}"] = used_ns / when.on_ns if when.on_ns else float("nan")
        row[f"memory_{name}_bytes"] = largest_memory(of_service, when.begin_ns, when.end_ns)
    return row


def cpu_us_per_success(samples: pd.DataFrame, result: LoadResult) -> float:
    """Return a service's CPU time (us) per success of the measured stage; NaN without successes.

    With windows, all CPU time of those that count is divided by all their successes: requests that
    are sent while a window settles cost CPU, too.
    """
    when = OnTime.of(result)
    if result.windows is None:
        rate = result.throughput_rps
        share = cpu_share(samples, when.begin_ns, when.end_ns)
        return share * 1e6 / rate if rate > 0 else float("nan")
    done_ns = (rows["done_ns"][rows["error"] == 0] for rows in result.chunks())
    count = sum(completed(done, np.array([[when.begin_ns, when.end_ns]])) for done in done_ns)
    used_ns = cpu_used_ns(samples, when.begin_ns, when.end_ns)
    return used_ns / 1e3 / count if count else float("nan")


def largest_memory(samples: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    """Return the most memory (bytes) between two instants, both interpolated, or NaN."""
    if samples.empty:
        return float("nan")
    t_ns, memory = samples["t_ns"].to_numpy(), samples["memory_bytes"].to_numpy()
    inside = memory[(t_ns >= begin_ns) & (t_ns <= end_ns)]
    return float(np.max([*inside, *np.interp([begin_ns, end_ns], t_ns, memory)]))


def cpu_share(samples: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    """Return CPU time over wall time between two instants, by interpolated cumulative time."""
    return cpu_used_ns(samples, begin_ns, end_ns) / max(1, end_ns - begin_ns)


def cpu_used_ns(samples: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    """Return the CPU time (ns) between two instants; see :func:`used_ns`."""
    return used_ns(samples, "cpu_ns", begin_ns, end_ns)


def identity_columns(
    trial_id: str, block: int, position: int, attempt: int, name: str, levels: Mapping[str, str]
) -> dict[str, Any]:
    """Return the columns that identify a trial."""
    return {
        "trial_id": trial_id,
        "block": block,
        "position": position,
        "attempt": attempt,
        "treatment": name,
        **{f"factor_{factor}": level for factor, level in levels.items()},
    }


def streamed_tables(result: LoadResult) -> dict[str, pd.DataFrame]:
    """Return the tables of messages, progress and chunks that have rows."""
    tables = {
        "messages": message_table(result.messages),
        "progress": result.progress,
        "chunks": result.stream_chunks,
    }
    return {name: table for name, table in tables.items() if len(table)}


def message_table(noted: pd.DataFrame) -> pd.DataFrame:
    """Return the messages for the recording, from the rows that scripts noted."""
    names = ["worker", "user", "direction", "kind", "at_ns", "bytes"]
    return noted[names].assign(planned_ns=noted["key"])
