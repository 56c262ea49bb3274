"""The row of a trial from its tables, CPU that others used, and guarded looks of instruments."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from pydantic_core import to_jsonable_python

from perflab.errors import InstrumentFailed, LoadError, RunInterrupted, StackError, WrongAnswer
from perflab.host.meters import ProcessTable, core_times
from perflab.instruments import Instrument, Load, Look, Scene
from perflab.instruments.instrument import kind_of
from perflab.instruments.kernel import used_ns
from perflab.load.checks.selfcheck import SelfCheck
from perflab.load.records.result import LoadResult, completed
from perflab.load.workload.windows import BEGIN, COUNTED, END
from perflab.recordings import Reason, Remark, RunWriter, TreatmentRecord, trial_id
from perflab.recordings.responses import lower_end_column
from perflab.recordings.sameness import differences
from perflab.stacks.plan import StackPlan
from perflab.stacks.residents import Residents
from perflab.stacks.spec import load_service
from perflab.trials.plan import Treatment


def others_cpu(residents: Residents, treatment: str) -> Callable[[], dict[str, float]]:
    """Return a function that gives ``idle_cpu_share`` and ``steal_share`` since this call.

    1.0 is one core.
    """
    began_ns = time.monotonic_ns()
    before_ns, stolen_ns = cpu_of_idle(residents, treatment), steal_ns()

    def shares() -> dict[str, float]:
        wall_ns = time.monotonic_ns() - began_ns
        idle_ns = cpu_of_idle(residents, treatment) - before_ns
        stolen = (steal_ns() - stolen_ns) / wall_ns
        return {"idle_cpu_share": idle_ns / wall_ns, "steal_share": stolen}

    return shares


def cpu_of_idle(residents: Residents, name: str) -> int:
    """Return the CPU time (ns) of the residents that a treatment does not use."""
    table = ProcessTable()
    total = 0
    for instance in residents.idle(name).values():
        with contextlib.suppress(OSError):
            reading = instance.meter().read(table)
            total += reading.cpu_ns if reading else 0
    return total


def steal_ns() -> int:
    """Return the time (ns) that other guests of the machine have taken from its cores."""
    return sum(times.steal_ns for times in core_times().values())


T = TypeVar("T")
LONGEST_TEXT = 300
# With these errors the lab fails a trial or ends a run; an instrument may raise them, too.
_PASSED_ON = (StackError, LoadError, WrongAnswer, RunInterrupted)


class GuardedLook:
    """The look of an instrument, whose own errors become :class:`InstrumentFailed`.

    The error names instrument, step, exception and line. Making the look is a step, too.
    """

    def __init__(self, instrument: Instrument, scene: Scene) -> None:
        self._kind = type(instrument)
        self.look: Look[Any] = self.take(instrument.look, scene)

    def take(self, step: Callable[..., T], *words: Scene | Load) -> T:
        """Take a step of the look and return its result."""
        try:
            return step(*words)
        except _PASSED_ON:
            raise
        except Exception as error:
            module, _, name = kind_of(self._kind).partition(":")
            text = " ".join(str(error).split())[:LONGEST_TEXT]
            problem = ": ".join(filter(None, [type(error).__name__, text]))
            raise InstrumentFailed(
                f"instrument {name} ({module}) raised in {step.__name__}: {problem}"
                + _line_in(inspect.getfile(self._kind), error)
            ) from error


def _line_in(file: str, error: Exception) -> str:
    """Return the last line of the traceback that lies in the instrument's file."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == file:
            return f" ({Path(file).name}, line {frame.lineno}: {frame.line})"
    return ""


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


NAMED = ("name", "levels", "label")
SHOWN = 5


def treatment_records(
    treatments: Iterable[Treatment],
) -> tuple[list[TreatmentRecord], dict[str, Any]]:
    """Return the treatments for the record, and the parts that they share.

    Each field of a treatment is a part: its stack with all settings, its workload, its instruments.
    """
    parts: dict[str, Any] = {}
    records = [
        TreatmentRecord(
            name=item.name,
            levels=dict(item.levels),
            label=item.label,
            parts={name: shared(value, parts) for name, value in _whole(item).items()},
        )
        for item in treatments
    ]
    return records, parts


def shared(value: Any, parts: dict[str, Any]) -> str:
    """Put a value into ``parts`` unless it is there, and return its key."""
    plain = to_jsonable_python(value)
    text = json.dumps(plain, sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    parts.setdefault(key, plain)
    return key


def _whole(treatment: Treatment) -> dict[str, Any]:
    words = treatment.model_dump(mode="json", exclude=set(NAMED), exclude_none=True)
    return {**words, "stack": resolved(treatment.stack)}


def resolved(stack: StackPlan) -> dict[str, Any]:
    """Return a stack as plain data, with the default of every setting that it leaves open."""
    words = stack.model_dump(mode="json")
    for node, named in zip(stack.nodes, words["nodes"], strict=True):
        named["settings"] = load_service(node.service).resolve(node.settings)
    return words


def confirm(writer: RunWriter, treatment: str, reported: Mapping[str, Any]) -> list[Reason]:
    """Record the settings that a treatment's services report; return a reason if they changed.

    ``reported`` has the settings by node, from the treatment's latest trial.
    """
    recorded = writer.record.reported_by(treatment)
    if recorded is None:
        parts = dict(writer.record.parts)
        key = shared(reported, parts)
        writer.update(parts=parts, reported={**writer.record.reported, treatment: key})
        return []
    changed = list(map(str, differences(recorded, to_jsonable_python(reported))))
    if not changed:
        return []
    more = [f"and {len(changed) - SHOWN} more"] if len(changed) > SHOWN else []
    listed = ", ".join([*changed[:SHOWN], *more])
    text = f"services report other settings than those in the run's record: {listed}"
    return [Reason(code="stack.settings", text=text)]
