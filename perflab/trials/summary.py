"""The row of a trial from its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from perflab.instruments import Load
from perflab.load.checks.selfcheck import SelfCheck
from perflab.load.records.result import LoadResult, completed
from perflab.load.workload.windows import BEGIN, COUNTED, END
from perflab.recordings import Remark, trial_id
from perflab.recordings.responses import lower_end_column
from perflab.statistics.cumulative import used_ns

# After its last window a service still works on requests in flight.
DRAIN_NS = 1_000_000_000
# Of the generator's judgement; a trial has its reasons and remarks, and an instrument the CPU time.
NOT_IN_COLUMNS = ("loop_delay_p50_ms", "client_cpu_us_per_request", "reasons", "warnings")


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
    names = (field.name for field in fields(check) if field.name not in NOT_IN_COLUMNS)
    return {name: getattr(check, name) for name in names}


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
        begin_ns, end_ns = int(counts[0, BEGIN]), int(counts[-1, END])
        # A window between these that does not count costs CPU all the same.
        within = result.windows[(result.windows[:, BEGIN] >= begin_ns)]
        within = within[within[:, END] <= end_ns]
        length_ns = int((within[:, END] - within[:, BEGIN]).sum())
        return cls(begin_ns, end_ns + DRAIN_NS, length_ns)


def service_columns(samples: pd.DataFrame, services: Sequence[str], when: OnTime) -> dict[str, Any]:
    """Return the CPU share (1.0 = one core) and the largest memory of each service."""
    row: dict[str, Any] = {}
    for name in services:
        of_service = samples[samples["service"] == name]
        cpu_ns = used_ns(of_service, "cpu_ns", when.begin_ns, when.end_ns)
        row[f"cpu_share_{name}"] = cpu_ns / when.on_ns if when.on_ns else float("nan")
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
    cpu_ns = used_ns(samples, "cpu_ns", when.begin_ns, when.end_ns)
    return cpu_ns / 1e3 / count if count else float("nan")


def cpu_per_success(name: str, samples: pd.DataFrame, result: LoadResult) -> dict[str, float]:
    """Return a column with :func:`cpu_us_per_success`, and its lower end where requests failed.

    At that end they took as much CPU as the others.
    """
    errors = result.measured(lambda rows: rows["error"])
    value, failed = cpu_us_per_success(samples, result), int((errors != 0).sum())
    if not failed:
        return {name: value}
    return {name: value, lower_end_column(name): value * (1 - failed / len(errors))}


def measured(load: Load) -> tuple[Load, list[Remark]]:
    """Return a load without contradictory samples, and a remark on each service without samples.

    A service that answers uses CPU: if none was seen, other processes answered.
    """
    node = load.workload.request.node
    cpu_ns = load.samples.loc[load.samples["service"] == node, "cpu_ns"]
    if load.result.throughput_rps > 0 and cpu_ns.nunique() == 1:
        load = replace(load, samples=load.samples[load.samples["service"] != node])
    sampled = set(load.samples["service"])
    texts = [
        f"service '{name}': its CPU and memory are not known, because processes answer that its "
        "command does not keep. It went into the background; start it in the foreground"
        for name in load.services
        if name not in sampled
    ]
    return load, [Remark(code="service.not_measured", text=text) for text in texts]


def largest_memory(samples: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    """Return the most memory (bytes) between two instants, both interpolated; NaN if unknown."""
    # 0 bytes stand for memory that nobody measured.
    if samples.empty or not samples["memory_bytes"].any():
        return float("nan")
    t_ns, memory = samples["t_ns"].to_numpy(), samples["memory_bytes"].to_numpy()
    inside = memory[(t_ns >= begin_ns) & (t_ns <= end_ns)]
    return float(np.max([*inside, *np.interp([begin_ns, end_ns], t_ns, memory)]))


def memory_growth(samples: pd.DataFrame, result: LoadResult) -> float:
    """Return by how much memory grew with a request (bytes), over the second half of them.

    What a service fills once, at its first requests, is no growth that goes on. NaN if unknown.
    """
    measured = result.requests[result.requests["stage"] == "measure"]
    done_ns = np.sort(measured["done_ns"].to_numpy())
    later = len(done_ns) - len(done_ns) // 2
    if len(done_ns) < 2 or samples.empty or not samples["memory_bytes"].any():
        return float("nan")
    t_ns, memory = samples["t_ns"].to_numpy(), samples["memory_bytes"].to_numpy()
    half, whole = np.interp([done_ns[-later - 1], done_ns[-1]], t_ns, memory)
    return float((whole - half) / later)


def cpu_share(samples: pd.DataFrame, begin_ns: int, end_ns: int) -> float:
    """Return CPU time over wall time between two instants, by interpolated cumulative time."""
    return used_ns(samples, "cpu_ns", begin_ns, end_ns) / max(1, end_ns - begin_ns)


def identity_columns(
    block: int, position: int, attempt: int, name: str, levels: Mapping[str, str]
) -> dict[str, Any]:
    """Return the columns that identify a trial."""
    return {
        "trial_id": trial_id(block, position, attempt),
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
